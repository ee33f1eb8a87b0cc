"""Outcomes in Dagster's words: metadata of an output, or a Failure that is tried again or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
import msgspec

from penstock.bridges.drains import StageEnd, TaskFailed


def metadata_of(end: StageEnd) -> dict[str, Any]:
    """What is shown beside an op that has drained a stage."""
    found: dict[str, Any] = {
        "run": end.view.run,
        "source": end.view.source,
        "stage": end.view.step,
        "state": msgspec.to_builtins(end.view.state),
        "seconds": end.view.seconds,
        **end.counts,
    }
    if end.url:
        found["dashboard"] = dg.MetadataValue.url(end.url)
    if end.warning:
        found["warning"] = end.warning
    return found


@contextmanager
def failures_shown() -> Iterator[None]:
    """Turn TaskFailed into a Failure of one line, and without a retry where none can help."""
    try:
        yield
    except TaskFailed as error:
        raise dg.Failure(
            description=error.message,
            metadata={"code": error.code, "exit code": error.exit_code},
            allow_retries=not error.is_final,
        ) from None
