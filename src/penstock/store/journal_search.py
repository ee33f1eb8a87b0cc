"""The newest events of something, found without walking through the whole journal.

Starts and successes of jobs are nearly all of the journal, and stand in no index. Everything else does, by
its kind and by its job. Starts and successes are walked through, from where they can be at the latest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from penstock.jobs.job import JobState
from penstock.journal.condition import Condition
from penstock.journal.job_events import JobNoted, JobStarted, JobSucceeded
from penstock.store.database import Database, to_json
from penstock.store.journal_rows import StoredEvent, conditions, matching, read_events
from penstock.store.rows import EventRow

# As the conditions of the indexes have them.
HOT = (JobStarted.kind, JobSucceeded.kind)
# So many of a job's other events are read at once.
PIECE = 1_000
LAST = 2**63 - 1
# On a server, lines of transactions that were written side by side stand in any order.
DISORDER, DISORDER_S = 1_000, 60.0
# A move is looked for among so many lines before any others.
NEAR = 50_000
WIDER = 4


class Wanted(msgspec.Struct, frozen=True):
    """Which events: of a kind or a noun as it is stored, or of all the names that a kind has had."""

    limit: int
    kind: str | None = None
    kinds: tuple[str, ...] | None = None
    where: tuple[Condition, ...] = ()

    def accepts(self, kind: str) -> bool:
        if self.kinds is not None:
            return kind in self.kinds
        return self.kind is None or kind == self.kind or kind.startswith(f"{self.kind}.")

    @property
    def is_rare(self) -> bool:
        """Whether neither starts nor successes are among them."""
        return not any(map(self.accepts, HOT))


class JobSpan(msgspec.Struct, frozen=True):
    """Of a job: its run, its last attempt, and when it was moved last."""

    run_id: int
    state: JobState
    attempt: int
    at: float
    # The first line of its run: nothing of a job stands before.
    first_id: int


class RunSpan(msgspec.Struct, frozen=True):
    """Of a run: its first line, and the last of its own."""

    first_id: int
    ended_at: float | None
    last_id: int | None

    @property
    def until_id(self) -> int:
        """Behind this there is nothing but what is noted of its jobs later."""
        return LAST if None in (self.ended_at, self.last_id) else (self.last_id or 0) + DISORDER


def rare_events(
    db: Database, wanted: Wanted, source_id: int | None, run_id: int | None, before_id: int | None
) -> list[EventRow]:
    """The newest that are neither starts nor successes, oldest of them first."""
    until_id = LAST if before_id is None else before_id - 1
    if run_id is not None:
        return rare_events_of_run(db, wanted, run_id, 0, until_id)
    about = {"floor_id": 0, "until_id": until_id, "source_id": source_id}
    return _read(db, "events_of_kinds", wanted, kinds=to_json(_kinds(db, wanted)), **about)


def rare_events_of_run(
    db: Database, wanted: Wanted, run_id: int, floor_id: int, until_id: int
) -> list[EventRow]:
    """Those of a run and its jobs, between two lines."""
    kinds = to_json(_kinds(db, wanted))
    about = {"run_id": run_id, "floor_id": floor_id, "until_id": until_id}
    return _read(db, "rare_events_of_run", wanted, kinds=kinds, **about)


def _kinds(db: Database, wanted: Wanted) -> list[str]:
    """Those that the journal has; a newer Penstock may have written some that this one does not know."""
    return [kind for kind in db.json("rare_kinds") if wanted.accepts(kind)]


def _read(db: Database, query: str, wanted: Wanted, **about: Any) -> list[EventRow]:
    """As many as are wanted. The database lets old sentences pass; what does not match is left out here."""
    found: list[EventRow] = []
    while True:
        about |= {"where": conditions(wanted.where), "limit": wanted.limit}
        page = read_events(db.decoded(query, list[StoredEvent], **about))
        found = [*matching(page, wanted.where), *found]
        if len(page) < wanted.limit or len(found) >= wanted.limit:
            return found[-wanted.limit :]
        about["until_id"] = page[0].id - 1


class JobLines:
    """The events of one job. `line_until` finds the last line that was written until a time."""

    def __init__(
        self, db: Database, job_id: int, span: JobSpan, line_until: Callable[[float], int]
    ) -> None:
        self._db = db
        self._job_id = job_id
        self._span = span
        self._line_until = line_until

    def newest(self, wanted: Wanted, before_id: int | None) -> list[EventRow]:
        """The newest of them before a line, oldest of them first."""
        before_id = LAST if before_id is None else before_id
        rare = self._rare()
        if wanted.is_rare:
            return _chosen(rare, wanted, 0, before_id)
        found = list(rare)
        upto = self._succeeded(found)
        for attempt in range(self._span.attempt, 0, -1):
            upto = self._started(attempt, rare, found, upto)
            chosen = _chosen(found, wanted, upto, before_id)
            if len(chosen) >= wanted.limit:
                return chosen
        return _chosen(found, wanted, 0, before_id)

    def _rare(self) -> list[StoredEvent]:
        found: list[StoredEvent] = []
        about = {"run_id": self._span.run_id, "job_id": self._job_id, "limit": PIECE}
        until_id = LAST
        while True:
            place = {"floor_id": 0, "until_id": until_id}
            page = self._db.decoded("rare_events_of_job", list[StoredEvent], **about, **place)
            found = [*page, *found]
            if len(page) < PIECE:
                return found
            until_id = page[0].id - 1

    def _succeeded(self, found: list[StoredEvent]) -> int:
        """Add its success, if there is one; the line from which its last start is looked for."""
        if self._span.state == JobState.SUCCEEDED:
            success = self._at_last_move(JobSucceeded.kind)
            found += success
            return success[0].id - 1 if success else LAST
        return LAST

    def _started(
        self, attempt: int, rare: Sequence[StoredEvent], found: list[StoredEvent], upto: int
    ) -> int:
        """Add the start of an attempt; the line from which that of the one before is looked for."""
        own = [row for row in rare if row.kind != JobNoted.kind]
        upto = min([upto, *(row.id - 1 for row in own if row.attempt == attempt)])
        before = [row.id for row in own if (row.attempt or 0) < attempt and row.id <= upto]
        if upto == LAST and self._span.state == JobState.RUNNING:
            start = self._at_last_move(JobStarted.kind)
        else:
            start = self._hot(JobStarted.kind, attempt, max(before, default=0), upto)
        found += start
        return start[0].id - 1 if start else upto

    def _at_last_move(self, kind: str) -> list[StoredEvent]:
        """Where the job was moved last, as far as lines stand in the order of time; else wherever it is."""
        near = self._line_until(self._span.at)
        for floor_id, until_id in (
            (near - NEAR, near + DISORDER),
            (0, self._line_until(self._span.at + DISORDER_S)),
            (0, LAST),
        ):
            found = self._hot(kind, self._span.attempt, floor_id, until_id)
            if found:
                return found
        return []

    def _hot(self, kind: str, attempt: int, floor_id: int, until_id: int) -> list[StoredEvent]:
        """In pieces, each larger than the last: a planner that expects one line reads all it is given."""
        floor_id = max(floor_id, self._span.first_id - 1)
        until_id = min(until_id, self._db.json("journal_ids")[1] or 0)
        piece, found = NEAR, list[StoredEvent]()
        while not found and until_id > floor_id:
            place = {"floor_id": max(floor_id, until_id - piece), "until_id": until_id}
            wanted = {"run_id": self._span.run_id, "job_id": self._job_id, "attempt": attempt}
            found = self._db.decoded(
                "hot_event_of_job", list[StoredEvent], kind=kind, **wanted, **place
            )
            until_id, piece = place["floor_id"], piece * WIDER
        return found


def _chosen(
    found: Sequence[StoredEvent], wanted: Wanted, floor_id: int, before_id: int
) -> list[EventRow]:
    """Of what was found between two lines, what is wanted, the newest of it; oldest first."""
    ordered = sorted(found, key=lambda each: each.id)
    rows = [row for row in ordered if floor_id < row.id < before_id and wanted.accepts(row.kind)]
    return matching(read_events(rows), wanted.where)[-wanted.limit :]
