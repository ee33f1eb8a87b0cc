"""What an exception says about an attempt: the outcome it stands for."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path

from penstock.errors import PipelineError
from penstock.jobs.outcome import (
    AttemptLost,
    Cancelled,
    Failed,
    Outcome,
    Reject,
    Skip,
    Skipped,
    Snooze,
    Snoozed,
    Throttled,
)
from penstock.pipeline.step import DataError
from penstock.sources.failures import Disallowed, FetchError, HostClosed, Paced

ERROR_LENGTH = 2000
SHOWN_FRAMES = 8
_ROOM = Path(__file__).resolve().parent.parent
_OURS = tuple(str(_ROOM / room) for room in ("pipeline", "engine", "sources"))
_PLUMBING = (
    str(Path(asyncio.__file__).parent),
    str(Path(asyncio.__file__).parent.parent / "contextlib"),
)


def outcome_of(error: BaseException) -> Outcome:
    """Whatever a step raises ends its own attempt only, KeyboardInterrupt and SystemExit included.

    A CancelledError is a failure here: who stops an attempt on purpose says so beforehand, and a
    step that cancels itself would otherwise be started again for ever.
    """
    error = _innermost(error)
    match error:
        case Skip():
            return Skipped(error.reason)
        case Reject():
            return Skipped(error.reason, is_rejection=True)
        case Snooze():
            return Snoozed(error.delay_s, error.reason)
        case AttemptLost():
            return Cancelled(str(error))
        case FetchError():
            return _outcome_of_fetch(error)
        case DataError():
            return Failed(_tell(error, with_type=False), is_permanent=True, kind="data")
        case PipelineError():
            return Failed(_tell(error, with_type=False), is_permanent=True, kind="permanent")
    return Failed(_tell(error), traceback=_frames(error))


def timed_out(timeout_s: float) -> Failed:
    return Failed(f"timed out after {timeout_s:g} s", kind="timeout")


def _outcome_of_fetch(error: FetchError) -> Outcome:
    match error:
        case Disallowed():
            return Skipped(_tell(error, with_type=False))
        case Paced():
            # Our own rate, not the host's wish: the others on that host need not wait.
            return Snoozed(error.delay_s, _tell(error, with_type=False))
        case HostClosed():
            return Throttled(error.host, error.delay_s)
    return Failed(
        _tell(error),
        traceback=_frames(error),
        is_permanent=error.is_permanent,
        kind=error.kind,
    )


def _innermost(error: BaseException) -> BaseException:
    """Of a group, the one to act on: a request to wait if there is any, else the first."""
    while isinstance(error, BaseExceptionGroup):
        closed = error.subgroup(HostClosed)
        error = (closed or error).exceptions[0]
    return error


def _tell(error: BaseException, with_type: bool = True) -> str:
    try:
        message = str(error)
    except Exception:
        message = "(its message can't be shown)"
    name = type(error).__name__
    text = f"{name}: {message}" if with_type and message else message or name
    # Lone surrogates can't be stored.
    return text.encode("utf-8", "backslashreplace").decode()[:ERROR_LENGTH]


def _frames(error: BaseException) -> str:
    """The last frames of the user's own code: where to look, without what the variables held."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(_OURS + _PLUMBING)]
    text = "".join(traceback.format_list(theirs[-SHOWN_FRAMES:])).rstrip()
    return text.encode("utf-8", "backslashreplace").decode()
