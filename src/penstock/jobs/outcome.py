"""What an attempt came to."""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.jobs.effects import Effects, Extracted
from penstock.jobs.job import JobState, Unit

# Skips that are counted apart: the page is as it was, or we are not allowed to look at it.
SkipWhy = Literal["", "unchanged", "disallowed", "missing"]
# What a rejection is filed under when nobody names a code, and when its score is too low.
REJECTED = "rejected"
BELOW_THRESHOLD = "below_threshold"
# What does not fit the schema of its collection.
SCHEMA = "schema"
CODE_LENGTH = 64


class Succeeded(msgspec.Struct, frozen=True):
    effects: Effects


class Uncommitted(msgspec.Struct, frozen=True, kw_only=True):
    """An end that does not commit what was buffered, except what was spent: that is paid for all the same."""

    spent: dict[str, float] = {}


class Failed(Uncommitted, frozen=True):
    """`is_permanent`: trying again can't help, so no attempt is spent on it."""

    error: str
    traceback: str = ""
    is_permanent: bool = False
    kind: str = "unknown"
    # What repeated failures have in common: a place in the code, a selector, a host.
    cause: str = ""
    host: str = ""
    # It ran out of time; transient, unless somebody knows better.
    is_timeout: bool = False
    # Who was asked answered, with an error; it may be about this item alone.
    is_answer: bool = False


class Throttled(Uncommitted, frozen=True):
    """The provider asked us to wait; its host is closed for everyone until then.

    `is_answer`: it was asked and said so. Otherwise it was not asked, because it is known to be closed, by
    its own wish or by a `breaker`: such a wait says nothing about the job.
    """

    host: str
    delay_s: float
    is_answer: bool = True
    gate: str = ""


class Snoozed(Uncommitted, frozen=True):
    """The step asked to be run again later; no attempt is spent.

    `outside`: the host whose hours it waits for, if it does. `is_cut`: it was put off in the middle of a
    step, which starts over.
    """

    delay_s: float
    reason: str = ""
    outside: str = ""
    is_cut: bool = False


class Skipped(Uncommitted, frozen=True):
    """There was nothing to do. `is_rejection`: the item was judged and not wanted."""

    reason: str
    is_rejection: bool = False
    why: SkipWhy = ""
    code: str = ""
    score: float | None = None
    # What is to be remembered all the same: that the page was looked at.
    effects: Effects | None = None


class Cancelled(Uncommitted, frozen=True):
    """The attempt was stopped before it came to anything; `Released` work runs again at once."""

    reason: str


Outcome = Succeeded | Failed | Throttled | Snoozed | Skipped | Cancelled


class Settlement(msgspec.Struct, frozen=True):
    """The end of one attempt, ready to be written: where the job goes, and what comes with it."""

    job_id: int
    attempt: int
    state: JobState
    delay_s: float = 0.0
    spends_try: bool = False
    is_throttle: bool = False
    reason: str = ""
    error: str = ""
    traceback: str = ""
    closes_host: str = ""
    closes_for_s: float = 0.0
    # For accounts, breakers and quarantine; empty where nobody told.
    unit: Unit | None = None
    skip: SkipWhy = ""
    cause: str = ""
    host: str = ""
    # The gate that turned the attempt away at its host, if it was not the host itself.
    gate: str = ""
    took_s: float = 0.0
    useful_for_s: float | None = None
    # The job has failed before: that it fails again says nothing new about its source.
    is_again: bool = False
    is_answer: bool = False
    # Whatever it is due to, nobody is to have it tried again: a probe's.
    is_final: bool = False
    effects: Effects = msgspec.field(default_factory=Effects)
    # Its end if what it was based on has changed meanwhile.
    otherwise: Settlement | None = None


class Flush(msgspec.Struct, frozen=True):
    """A part of a long attempt's effects, written under its fence while it goes on.

    Numbered from 1 within the attempt, so that one that is sent twice is written once. `is_progress`:
    a stream has come further, so what it has failed and died of before does not count any more.
    """

    job_id: int
    attempt: int
    effects: Effects
    number: int = 0
    is_progress: bool = False


class Skip(Exception):
    """Raise in a step: there is nothing to do for this item, and that is fine."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unchanged(Skip):
    """A page is as it was when it was extracted last. `page` is what was found, if it was looked at."""

    def __init__(self, reason: str, page: Extracted | None = None) -> None:
        super().__init__(f"unchanged: {reason}")
        self.why = reason
        self.page = page


class NotThere(Skip):
    """A page is not there any more, and its source says to skip such pages."""


class Reject(Exception):
    """Raise in a step: this item was judged and is not wanted; it is kept with its code and reason."""

    def __init__(self, reason: str, code: str = REJECTED, score: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.score = score


class Snooze(Exception):
    """Raise in a step: run this job again after `delay_s` seconds; no attempt is spent."""

    def __init__(self, delay_s: float, reason: str = "") -> None:
        super().__init__(reason or f"snoozed for {delay_s} s")
        self.delay_s = delay_s
        self.reason = reason


class AttemptLost(Exception):
    """This attempt no longer owns its job: what it would write now changes nothing."""
