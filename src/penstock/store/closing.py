"""Closing: entries of quarantine that a later job of the same page has answered.

The same page is the same source, stage and key. When its later job succeeds or is skipped, the older entry is
closed; when it fails too, the older entry goes into the newer one, which counts both. A closed entry ends as
`cancelled`, is journalled, and can still be listed. Replays and probes answer nothing: they write no records.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from penstock.errors import StoreError
from penstock.jobs.job import JobState
from penstock.store.advancing import advance_runs
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger

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
        closings, merges = [], []
        for job_id, *_ in moved:
            answer = by_job[job_id]
            closings.append((job_id, _why(answer, run_id), answer.by_job_id))
            if answer.by_state is JobState.QUARANTINED:
                merges.append((job_id, answer.by_job_id))
        if merges:
            db.do("merge_entries", merges=to_json(merges))
        write_closed(db, ledger, "quarantine.closed", ACTOR, moved, closings)
        advance_runs(db, ledger, now)
        ledger.write()
        return len(moved)


def _why(answer: Answered, run_id: int) -> str:
    job = f"job {answer.by_job_id} of run {run_id}"
    if answer.by_state is JobState.QUARANTINED:
        return f"{job} failed for the same page and counts both"
    if not answer.is_same:
        return f"{job} extracted its page again"
    return f"{job} {'was skipped' if answer.by_state is JobState.SKIPPED else 'succeeded'}"


def close_of_replay(db: Database, run_id: int, why: str) -> None:
    """A replay that was committed or dropped leaves nothing to look at."""
    while ids := db.json("entries_of_run", run_id=run_id, limit=BATCH):
        with db.writing() as now:
            moved = db.rows("discard_entries_if_quarantined", ids=to_json(ids), now=now)
            ledger = Ledger(db, now)
            closings = [(job_id, why, None) for job_id, *_ in moved]
            write_closed(db, ledger, "quarantine.closed", ACTOR, moved, closings)
            advance_runs(db, ledger, now)
            ledger.write()
        if not moved:
            return


def write_closed(
    db: Database,
    ledger: Ledger,
    kind: str,
    actor: str,
    moved: Sequence[Any],
    closings: Sequence[tuple[int, str, int | None]],
    reason: str | None = None,
) -> None:
    """Count, journal and mark entries that were moved out of quarantine for good.

    The journal has the reason that somebody gave; where nobody did, it says why each was closed.
    """
    why = {job_id: closed_why if reason is None else reason for job_id, closed_why, _ in closings}
    for job_id, run_id, source_id, stage, attempt in sorted(moved):
        ledger.moved(run_id, stage, JobState.QUARANTINED, JobState.CANCELLED)
        ledger.journal(kind, source_id, run_id, job_id, attempt, actor, why[job_id])
    if closings:
        db.do("note_closed", now=ledger.now, closings=to_json(closings))
    ledger.write_counts()
