"""What a pipeline or a step asks for beyond its work: its retries, until when, and what its errors mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from penstock.errors import ConfigError, PipelineError, nearest
from penstock.jobs.failures import Declared, check_declared
from penstock.settings import RetryChoice, parse_duration

RETRY_KEYS = ("class", "tries", "base", "cap", "unknown_tries")


def retry_choice(who: str, retry: Any) -> RetryChoice | None:
    """The name of a class, or a mapping that says what is different from one.

    Which classes there are is known to the project; it refuses a name that is none when it is loaded.
    """
    if retry is None:
        return None
    if isinstance(retry, str) and retry:
        return RetryChoice(retry)
    if not isinstance(retry, Mapping):
        raise PipelineError(f"{who}: retry is the name of a class or a mapping, not {retry!r}")
    for name in retry:
        if name not in RETRY_KEYS:
            raise PipelineError(f"{who}: retry has no {name!r}; {nearest(str(name), RETRY_KEYS)}")
    named = retry.get("class")
    if named is not None and (not isinstance(named, str) or not named):
        raise PipelineError(f"{who}: retry: class is the name of a class, not {named!r}")
    return RetryChoice(
        named,
        _tries(who, "tries", retry.get("tries")),
        duration_s(f"{who}: retry: base", retry.get("base")),
        duration_s(f"{who}: retry: cap", retry.get("cap")),
        _tries(who, "unknown_tries", retry.get("unknown_tries")),
    )


def duration_s(what: str, duration: Any) -> float | None:
    """Seconds, or text like `30s`; None stays None."""
    if duration is None:
        return None
    seconds: Any = duration
    if isinstance(duration, str):
        with suppress(ConfigError):
            seconds = parse_duration(duration)
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds < math.inf:
        raise PipelineError(f"{what} {duration!r} is not a duration like '30s'")
    return float(seconds)


def declared_errors(who: str, errors: Any) -> Declared:
    try:
        return check_declared(errors)
    except ValueError as error:
        raise PipelineError(f"{who}: {error}") from None


def _tries(who: str, name: str, tries: Any) -> int | None:
    if tries is None or (isinstance(tries, int) and not isinstance(tries, bool) and tries >= 1):
        return tries
    raise PipelineError(f"{who}: retry: {name} is a whole number from 1 up, not {tries!r}")
