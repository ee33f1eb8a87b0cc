"""Closing: entries of quarantine that a later job of the same page has answered.

The same page is the same source, stage and key. When its later job succeeds or is skipped, the older entry is
closed; when it fails too, the older entry goes into the newer one, which counts both. A closed entry ends as
`cancelled`, is journalled, and can still be listed. Replays and probes answer nothing: they write no records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec

from penstock.errors import StoreError
from penstock.jobs.job import JobState
from penstock.journal.event import Event
from penstock.journal.job_events import QuarantineClosed
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger
from penstock.store.turn.run_progress import advance_runs

BATCH = 500
# Entries are looked for in so many of the newest runs of a source.
LOOKED_AT_RUNS = 1000
ACTOR = "penstock"


class Answered(msgspec.Struct, array_like=True, frozen=True):
    """An entry, and the later job that answers it; of the page itself, or of the page it came from."""

    job_id: int
    by_job_id: int
    by_state: JobState
    is_same: bool | int


class Closing(msgspec.Struct, frozen=True):
    """Why an entry is closed, as it stands in the entry and in the journal."""

    why: str
    by_job_id: int | None
    event: Event


def close_after_turn(db: Database, ended_runs: Sequence[int]) -> None:
    """Close what the runs that a turn ended have answered.

    The turn is written, and what it claimed must reach its worker whatever becomes of this: what can't be
    closed now is closed when the source's next run ends.
    """
    if ended_runs:
        with suppress(StoreError):
            close_answered(db, ended_runs)


def close_answered(db: Database, run_ids: Sequence[int], *, is_committed: bool = False) -> int:
    """Close the entries that these runs have answered; answers how many. In batches, each of them whole.

    A replay answers for nothing before it is committed.
    """
    closed = 0
    for run_id in run_ids:
        after_id: int | None = 0
        while after_id is not None:
            where = {"run_id": run_id, "after_id": after_id, "is_committed": is_committed}
            where["runs"] = LOOKED_AT_RUNS
            found = db.decoded("answered_entries", list[Answered], **where, limit=BATCH)
            closed += _close(db, run_id, found) if found else 0
            after_id = found[-1].job_id if len(found) == BATCH else None
    return closed


def _close(db: Database, run_id: int, found: Sequence[Answered]) -> int:
    by_job = {answer.job_id: answer for answer in found}
    with db.writing() as now:
        moved = db.rows("discard_entries_if_quarantined", ids=to_json(sorted(by_job)), now=now)
        ledger = Ledger(db, now)
        closings, merges = {}, []
        for job_id, *_ in moved:
            answer = by_job[job_id]
            event = _event(answer, run_id)
            closings[job_id] = Closing(event.sentence(), answer.by_job_id, event)
            if answer.by_state is JobState.QUARANTINED:
                merges.append((job_id, answer.by_job_id))
        if merges:
            db.do("merge_entries", merges=to_json(merges))
        write_closed(db, ledger, ACTOR, moved, closings)
        advance_runs(db, ledger, now)
        ledger.write()
        return len(moved)


def _event(answer: Answered, run_id: int) -> QuarantineClosed:
    if answer.by_state is JobState.QUARANTINED:
        return QuarantineClosed(answer.by_job_id, run_id, "failed")
    if not answer.is_same:
        return QuarantineClosed(answer.by_job_id, run_id, "extracted")
    is_skipped = answer.by_state is JobState.SKIPPED
    return QuarantineClosed(answer.by_job_id, run_id, "skipped" if is_skipped else "succeeded")


def close_of_replay(db: Database, run_id: int, became: Literal["committed", "dropped"]) -> None:
    """A replay that was committed or dropped leaves nothing to look at."""
    while ids := db.json("entries_of_run", run_id=run_id, limit=BATCH):
        with db.writing() as now:
            moved = db.rows("discard_entries_if_quarantined", ids=to_json(ids), now=now)
            ledger = Ledger(db, now)
            event = QuarantineClosed(replay=run_id, replay_was=became)
            closings = {job_id: Closing(event.sentence(), None, event) for job_id, *_ in moved}
            write_closed(db, ledger, ACTOR, moved, closings)
            advance_runs(db, ledger, now)
            ledger.write()
        if not moved:
            return


def write_closed(
    db: Database,
    ledger: Ledger,
    actor: str,
    moved: Sequence[Any],
    closings: Mapping[int, Closing],
) -> None:
    """Count, journal and mark entries that were moved out of quarantine for good."""
    for job_id, run_id, source_id, stage, attempt in sorted(moved):
        ledger.moved(run_id, stage, JobState.QUARANTINED, JobState.CANCELLED)
        ledger.journal(closings[job_id].event, source_id, run_id, job_id, attempt, actor)
    if closings:
        rows = [(job_id, each.why, each.by_job_id) for job_id, each in closings.items()]
        db.do("note_closed", now=ledger.now, closings=to_json(rows))
    ledger.write_counts()
