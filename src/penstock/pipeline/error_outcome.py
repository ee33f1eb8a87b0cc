"""What an exception says about an attempt: the outcome it stands for."""

from __future__ import annotations

import asyncio
import sysconfig
import traceback
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from penstock.errors import PipelineError
from penstock.http.failures import (
    BudgetSpent,
    Disallowed,
    FetchError,
    HostBroken,
    HostClosed,
    HostOutside,
    Paced,
)
from penstock.jobs.failures import (
    FAIL_FAST,
    Declared,
    DeclaredFailure,
    Kind,
    attribute_of,
    classify,
    status_of,
)
from penstock.jobs.outcome import (
    AttemptLost,
    Cancelled,
    Failed,
    NotThere,
    Outcome,
    Reject,
    Skip,
    Skipped,
    Snooze,
    Snoozed,
    Throttled,
    Unchanged,
)
from penstock.jobs.words import words_of
from penstock.pipeline.rejection import rejection_of
from penstock.pipeline.step import DataError
from penstock.settings.secrets import LOOKED_AT

SHOWN_FRAMES = 8
# How long a provider is left alone that turned us away without naming a time.
THROTTLE_S = 30.0
LONGEST_THROTTLE_S = 3600.0
# A snooze for longer than this is a mistake of units.
LONGEST_SNOOZE_S = 10 * 365 * 86_400.0
_ROOM = Path(__file__).resolve().parent.parent
_OURS = tuple(str(_ROOM / room) for room in ("pipeline", "engine", "http"))
_PLUMBING = (
    str(Path(asyncio.__file__).parent),
    str(Path(asyncio.__file__).parent.parent / "contextlib"),
)
_INSTALLED = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


def outcome_of(error: BaseException, declared: Declared = ()) -> Outcome:
    """Whatever a step raises ends its own attempt only, KeyboardInterrupt and SystemExit included.

    A CancelledError is a failure here: who stops an attempt on purpose says so beforehand, and a
    step that cancels itself would otherwise be started again for ever.
    """
    try:
        return _judged(_innermost(error), declared)
    except Exception as trouble:  # an error whose own code fails while it is looked at
        name = type(error).__name__
        return Failed(f"{name}: (can't be shown: {type(trouble).__name__})", cause=name)


def _judged(error: BaseException, declared: Declared) -> Outcome:
    match error:
        case Unchanged():
            return Skipped(words_of(error.reason, LOOKED_AT), why="unchanged")
        case NotThere():
            return Skipped(error.reason, why="missing")
        case Skip():
            return Skipped(words_of(error.reason, LOOKED_AT))
        case Reject():
            judged = rejection_of(error)
            return Skipped(judged.reason, is_rejection=True, code=judged.code, score=judged.score)
        case Snooze():
            return Snoozed(_pause_s(error.delay_s), words_of(error.reason, LOOKED_AT))
        case AttemptLost():
            return Cancelled(str(error))
        case FetchError():
            return _outcome_of_fetch(error, declared)
        case DataError():
            return _failed(error, "data", cause=_tell(error, with_type=False))
        case PipelineError():
            return _failed(error, "permanent", cause=_tell(error, with_type=False))
    kind = classify(error, declared)
    if kind == "throttled":
        return Throttled("", _delay_s(error))
    return Failed(
        _tell(error),
        traceback=_frames(error),
        is_permanent=kind in FAIL_FAST,
        kind=kind,
        cause=_cause(error),
        is_answer=status_of(error) is not None,
    )


def timed_out(timeout_s: float) -> Failed:
    error = f"timed out after {timeout_s:g} s"
    return Failed(error, kind="transient", cause="timeout", is_timeout=True)


def _failed(error: BaseException, kind: Kind, cause: str) -> Failed:
    told = _tell(error, with_type=False)
    return Failed(told, is_permanent=True, kind=kind, cause=cause)


def _outcome_of_fetch(error: FetchError, declared: Declared) -> Outcome:
    match error:
        case Disallowed():
            return Skipped(_tell(error, with_type=False), why="disallowed")
        case Paced():
            # Our own rate, not the host's wish: the others on that host need not wait.
            return Snoozed(error.delay_s, _tell(error, with_type=False), is_cut=True)
        case HostOutside():
            return Snoozed(error.delay_s, error.message, outside=error.host, is_cut=True)
        case HostBroken():
            return Throttled(error.host, error.delay_s, is_answer=False, gate="breaker")
        case HostClosed():
            return Throttled(error.host, error.delay_s, is_answer=error.status is not None)
        case BudgetSpent():
            # Nobody's fault: it has no cause that others could share.
            return Failed(error.message, is_permanent=True, kind="budget")
    kind, host = _kind_of_fetch(error, declared), host_of(error.url)
    what = str(error.status) if error.status is not None else error.message
    return Failed(
        _tell(error),
        traceback=_frames(error),
        is_permanent=kind in FAIL_FAST,
        kind=kind,
        cause=" ".join(filter(None, (kind, what, host))),
        host=host,
        is_answer=error.status is not None,
    )


def _kind_of_fetch(error: FetchError, declared: Declared) -> Kind:
    said = next((kind for kind, types in declared if isinstance(error, types)), None)
    if said is not None:
        return said
    # An answer that was cut off is whole the next time; one that is too large is not.
    return "transient" if error.kind == "data" and not error.is_permanent else error.kind


def host_of(url: str) -> str:
    """The host of an address as it is shown; empty where it has none."""
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _cause(error: BaseException) -> str:
    """What this failure has in common with others: what it declares, else its type and where it came from."""
    if isinstance(error, DeclaredFailure) and error.cause:
        text = error.cause
    else:
        status = status_of(error)
        name = type(error).__name__ + (f" {status}" if status is not None else "")
        place = _place(error)
        text = f"{name} at {place}" if place else name
    return _storable(text)


def _place(error: BaseException) -> str:
    """The last line of the user's own code, without the machine's folders."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if is_users_code(frame.filename):
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return ""


def is_users_code(filename: str) -> bool:
    """Whether a line of this file is the project's own: neither Penstock's nor of what is installed."""
    return not filename.startswith(("<", *_OURS, *_PLUMBING, *_INSTALLED))


def _pause_s(asked: Any) -> float:
    """How long a step wants to wait: a number of seconds, or at once."""
    is_number = isinstance(asked, (int, float)) and not isinstance(asked, bool)
    return min(max(float(asked), 0.0), LONGEST_SNOOZE_S) if is_number and isfinite(asked) else 0.0


def _delay_s(error: BaseException) -> float:
    asked = attribute_of(error, "retry_after")
    if isinstance(asked, (int, float)) and 0 < asked <= LONGEST_THROTTLE_S:
        return float(asked)
    return THROTTLE_S


def _innermost(error: BaseException) -> BaseException:
    """Of a group, the one to act on: a request to wait if there is any, else the first."""
    while isinstance(error, BaseExceptionGroup):
        closed = error.subgroup(HostClosed)
        error = (closed or error).exceptions[0]
    return error


def _tell(error: BaseException, with_type: bool = True) -> str:
    try:
        message = str(error)
        # A message that is an error itself: its type says more than its text.
        if len(error.args) == 1 and isinstance(error.args[0], BaseException):
            message = words_of(error.args[0], LOOKED_AT)
    except Exception:
        message = "(its message can't be shown)"
    name = type(error).__name__
    text = f"{name}: {message}" if with_type and message else message or name
    return _storable(text)


def _storable(text: str) -> str:
    """It is cut to its length later, after secrets are masked in it."""
    return words_of(text, LOOKED_AT)


def _frames(error: BaseException) -> str:
    """The last frames of the user's own code: where to look, without what the variables held."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(_OURS + _PLUMBING)]
    text = "".join(traceback.format_list(theirs[-SHOWN_FRAMES:])).rstrip()
    return text.encode("utf-8", "backslashreplace").decode()
