"""What an attempt came to, and everything it wants remembered."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal

import msgspec

from penstock.gates.budget import Bound
from penstock.jobs.job import JobState, NewJob, Unit

Merge = Literal["replace", "keep", "merge"]
# Skips that are counted apart: the page is as it was, or we are not allowed to look at it.
SkipWhy = Literal["", "unchanged", "disallowed", "missing"]
# What a rejection is filed under when nobody names a code, and when its score is too low.
REJECTED = "rejected"
# What one transaction may hold of effects: it takes a second or two, and no beat of its worker is late.
MOST_EFFECTS = 200_000
MOST_EFFECT_BYTES = 128_000_000
BELOW_THRESHOLD = "below_threshold"
CODE_LENGTH = 64


class Save(msgspec.Struct, frozen=True):
    """A record to save. `data` is JSON with its fields in a fixed order, so equal means equal.

    `is_staged`: a replay saves it, so it is put aside for a person to look at.
    """

    collection: str
    key: str
    data: bytes
    score: float | None
    merge: Merge
    snapshot: int | None = None
    is_staged: bool = False
    # Of the code and configuration that made it; empty: that of its run.
    version: str = ""


class Mark(msgspec.Struct, frozen=True):
    """A checkpoint to move: the last durable cursor of one partition of a source.

    `is_ordered`: cursors of this partition can be told to go on or back.
    """

    partition: str
    cursor: bytes
    offset: bytes = b"null"
    is_ordered: bool = True


class Raised(msgspec.Struct, frozen=True):
    """A signal an attempt raised. `key` is the same in every attempt that says the same again."""

    name: str
    data: bytes
    key: str = ""


class Note(msgspec.Struct, frozen=True):
    """A line for the journal, in the step's own words."""

    text: str
    key: str = ""


class Rejection(msgspec.Struct, frozen=True):
    """Something that was judged and is not wanted; it is kept, with the item it was made from.

    `code` is a word that programs can go by; `reason` is for people.
    """

    code: str
    reason: str
    score: float | None = None
    key: str = ""


class Announced(msgspec.Struct, frozen=True):
    """What a site says of a page without its being fetched: when it was changed last."""

    url: str
    changed: str


class Extracted(msgspec.Struct, frozen=True):
    """A page that this attempt fetched; it is done with when the attempt succeeds.

    `version` is of the code and configuration that did it. `is_same`: it was looked at, and is as it was.
    """

    url: str
    hash: str
    snapshot: int | None = None
    at: float = 0.0
    version: str = ""
    # Of how many pages it is one that were fetched together.
    parts: int = 1
    is_same: bool = False
    # Of a replay: it is done with when that is committed.
    is_staged: bool = False


class Covered(msgspec.Struct, frozen=True):
    """A stretch of time of one partition that is ingested when the attempt succeeds."""

    partition: str
    start_at: float
    end_at: float


@dataclass(slots=True)
class Effects:
    """Everything an attempt buffers until the transaction that settles it."""

    children: list[NewJob] = field(default_factory=list)
    saves: list[Save] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    signals: list[Raised] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    announced: list[Announced] = field(default_factory=list)
    extracted: list[Extracted] = field(default_factory=list)
    covered: list[Covered] = field(default_factory=list)
    # Moments around which the source is to be looked at more often.
    moments: list[float] = field(default_factory=list)
    # What it cost, by measure: requests, bytes, seconds, money.
    spent: dict[str, float] = field(default_factory=dict)
    # What of that counts against which budgets now, because no request reserved it.
    charges: list[tuple[Bound, float]] = field(default_factory=list)
    # What a probe has seen, by name; see `Seen` in jobs/probe.py.
    probed: dict[str, int] = field(default_factory=dict)
    # A candidate of which nothing became: a step returned None.
    is_dropped: bool = False
    # What is known of the source's shape was found to be true.
    is_schema_verified: bool = False
    # How many records this attempt has saved before, in commits of its own.
    saved_before: int = 0
    # The attempt has come to an end that it wanted: what the next one says is new, however equal it is.
    forgets: bool = False

    def __bool__(self) -> bool:
        return bool(
            self.children
            or self.saves
            or self.marks
            or self.signals
            or self.notes
            or self.rejections
            or self.announced
            or self.extracted
            or self.covered
            or self.moments
            or self.spent
            or self.charges
            or self.probed
            or self.is_dropped
            or self.is_schema_verified
            or self.saved_before
            or self.forgets
        )

    @property
    def size(self) -> int:
        return (
            len(self.children)
            + len(self.saves)
            + len(self.marks)
            + len(self.notes)
            + len(self.rejections)
            + len(self.announced)
            + len(self.moments)
        )

    @property
    def weight(self) -> int:
        """How much of a transaction's time it takes, where MOST_EFFECTS is as much as there is."""
        many = self.size + len(self.signals)
        if many < 1000:
            return many
        written = sum([len(save.data) for save in self.saves])
        written += sum([len(child.item) for child in self.children])
        return max(many, written * MOST_EFFECTS // MOST_EFFECT_BYTES)

    def take(self) -> Effects:
        """Hand over what is buffered and start afresh."""
        taken, fresh = Effects(), Effects()
        for name in self.__slots__:
            setattr(taken, name, getattr(self, name))
            setattr(self, name, getattr(fresh, name))
        return taken

    def pour(self, others: Effects) -> None:
        """Take over what others brought; they are left empty."""
        for name in LISTS:
            if brought := getattr(others, name):
                mine = getattr(self, name)
                mine += brought
                brought.clear()
        for name in TALLIES:
            if brought := getattr(others, name):
                mine = getattr(self, name)
                for key, amount in brought.items():
                    mine[key] = mine.get(key, 0) + amount
                brought.clear()
        self.is_dropped = self.is_dropped or others.is_dropped
        self.is_schema_verified = self.is_schema_verified or others.is_schema_verified
        self.saved_before += others.saved_before
        self.forgets = self.forgets or others.forgets
        others.is_dropped = others.is_schema_verified = others.forgets = False
        others.saved_before = 0


# Its fields by what they are, so that one that is added is poured too.
LISTS = tuple(each.name for each in fields(Effects) if each.default_factory is list)
TALLIES = tuple(each.name for each in fields(Effects) if each.default_factory is dict)


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
    """Raise in a step: run this job again after so many seconds; no attempt is spent."""

    def __init__(self, delay_s: float, reason: str = "") -> None:
        super().__init__(reason or f"snoozed for {delay_s} s")
        self.delay_s = delay_s
        self.reason = reason


class AttemptLost(Exception):
    """This attempt no longer owns its job: what it would write now changes nothing."""
