"""What can go wrong in words an operator can act on.

Every error that reaches a person is a PenstockError: one line that says what is wrong, and where
there is one, a hint that says what to do. The command line prints both and exits with `exit_code`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PenstockError(Exception):
    """Something a person can mend; printed as one line, never as a traceback."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(PenstockError):
    """The command, the configuration or the pipeline asks for something that does not exist."""

    exit_code = 2


class ConfigError(UsageError):
    """`penstock.yaml` (or a module it names) can't be used as it is written.

    `entry` is the piece that is wrong. `mistakes` are all that were found, a line each, if there are several.
    """

    entry: object = None
    mistakes: tuple[str, ...] = ()


class PipelineError(UsageError):
    """A pipeline's graph or one of its steps is not well formed."""


class StoreError(PenstockError):
    """The database can't be opened, read or written."""

    exit_code = 5


class StoreFull(StoreError):
    """There is no space left for the database; nothing was lost, work resumes when there is."""


class StoreUnreachable(StoreError):
    """The database server can't be reached now; work goes on by itself when it can."""


class StoreLocked(StoreUnreachable):
    """Somebody else has kept a row locked for too long; work goes on by itself when they let go."""


class StoreIoError(StoreError):
    """A read, write or sync failed; nothing in memory may be trusted until the file is reopened."""


class StoreCorrupt(StoreError):
    """The database file is damaged; Penstock has stopped writing to it."""


class StoreReplaced(StoreCorrupt):
    """Another file lies where the open database did, or none; what is written now would be lost."""


class AlreadyRunning(PenstockError):
    """Another Penstock holds this project."""

    exit_code = 6


class Refused(PenstockError):
    """The act is possible, but not in the present state."""

    exit_code = 7


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most like this one, as the tail of an error message."""
    options = sorted(known)
    close = difflib.get_close_matches(word, options, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known: " + ", ".join(options) if options else ""
