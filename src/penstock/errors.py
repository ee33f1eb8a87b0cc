"""What can go wrong in words an operator can act on.

Every error that reaches a person is a PenstockError: one line that says what is wrong, a `code` that
programs can rely on, and where there is one, a remedy or a hint that says what to do. The command line
prints the message and the hint, and exits with `exit_code`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remedy:
    """The verb of a project that would help, and what it is called with: `sources.resume` of `acme.com`.

    Each front end has its own phrase for it: a command, a button, a call.
    """

    verb: str
    target: str | int | None = None

    def __str__(self) -> str:
        """As a program calls it."""
        target = "" if self.target is None else repr(self.target)
        return f"project.{self.verb}({target})"


class PenstockError(Exception):
    """Something a person can mend; printed as one line, never as a traceback.

    `code` is stable: a class has one, and an error may have a narrower one of its own (`run_paused`).
    """

    exit_code = 1
    code = "error"

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        code: str | None = None,
        remedy: Remedy | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or ("" if remedy is None else str(remedy))
        self.remedy = remedy
        if code is not None:
            self.code = code


class UsageError(PenstockError):
    """The command, the configuration or the pipeline asks for something that does not exist."""

    exit_code = 2
    code = "usage"


class ConfigError(UsageError):
    """`penstock.yaml` (or a module it names) can't be used as it is written.

    `entry` is the piece that is wrong, `key` where it stands. `mistakes` are a line for each, if there are
    several, and no more than fit a screen; `found` are all of them. `is_of_neighbours`: it is wrong only
    beside another key, or without one.
    """

    code = "config"
    entry: object = None
    key: str = ""
    is_of_neighbours = False
    mistakes: tuple[str, ...] = ()
    found: tuple[ConfigError, ...] = ()


class PipelineError(UsageError):
    """A pipeline's graph or one of its steps is not well formed."""

    code = "pipeline"


class StoreError(PenstockError):
    """The database can't be opened, read or written."""

    exit_code = 5
    code = "store"


class StoreFull(StoreError):
    """There is no space left for the database; nothing was lost, work resumes when there is."""

    code = "store_full"


class StoreUnreachable(StoreError):
    """The database server can't be reached now; work resumes automatically when it can."""

    code = "store_unreachable"


class StoreLocked(StoreUnreachable):
    """Somebody else has kept a row locked for too long; work resumes automatically when they let go."""

    code = "store_locked"


class StoreTooSlow(StoreError):
    """A read took longer than it may, and was given up."""

    code = "store_too_slow"


class StoreIoError(StoreError):
    """A read, write or sync failed; nothing in memory may be trusted until the file is reopened."""

    code = "store_io"


class StoreCorrupt(StoreError):
    """The database file is damaged; Penstock has stopped writing to it."""

    code = "store_corrupt"


class StoreReplaced(StoreCorrupt):
    """Another file lies where the open database did, or none; what is written now would be lost."""

    code = "store_replaced"


class AlreadyRunning(PenstockError):
    """Another Penstock holds this project."""

    exit_code = 6
    code = "already_running"


class Refused(PenstockError):
    """The act is possible, but not in the present state."""

    exit_code = 7
    code = "refused"


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most like this one, as the tail of an error message."""
    options = sorted(known)
    close = difflib.get_close_matches(word, options, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known: " + ", ".join(options) if options else ""
