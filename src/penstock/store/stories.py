"""Stories: what became of a job, from its rows and as far back as the journal goes."""

from __future__ import annotations

import msgspec

from penstock.journal.job_events import (
    JobCancelled,
    JobQuarantined,
    JobReleased,
    JobRetryScheduled,
    JobSkipped,
    JobSnoozed,
    JobStarted,
    JobStopped,
    JobSucceeded,
    JobThrottled,
)
from penstock.store.database import Database
from penstock.store.journal import Journal
from penstock.store.rows import JobRow

SHOWN = 20
STORY_LINES = 1000
# The events that end an attempt, and what they say became of it.
_ENDS = {
    JobSucceeded.kind: "succeeded",
    JobSkipped.kind: "skipped",
    JobRetryScheduled.kind: "retried",
    JobThrottled.kind: "throttled",
    JobSnoozed.kind: "snoozed",
    JobQuarantined.kind: "quarantined",
    JobReleased.kind: "released",
    JobStopped.kind: "stopped",
    JobCancelled.kind: "cancelled",
}


class Tried(msgspec.Struct, frozen=True):
    """One attempt, as the journal has it."""

    attempt: int
    worker: str
    started_at: float
    ended_at: float | None
    outcome: str
    detail: str


class Fetched(msgspec.Struct, frozen=True):
    id: int
    url: str
    status: int
    fetched_at: float
    hash: str


class Whereabouts(msgspec.Struct, frozen=True):
    returns_to: str | None
    returns_due_at: float | None
    parent_id: int | None
    snapshot_id: int | None


class Story(msgspec.Struct, frozen=True):
    """What became of a job: its attempts, what it fetched, and what came of it."""

    attempts: list[Tried]
    snapshots: list[Fetched]
    children: list[tuple[str, str, int]]
    records: list[tuple[str, str]]
    parent_id: int | None
    snapshot_id: int | None


def story_of(db: Database, job: JobRow) -> Story:
    """What is known of a job's past: from its rows, and as far back as the journal goes."""
    about = db.decoded("job_whereabouts", Whereabouts, id=job.id)
    children = db.json("children_of", id=job.id, run_id=job.run_id)
    return Story(
        _attempts(db, job),
        db.decoded("snapshots_of_job", list[Fetched], id=job.id, limit=SHOWN),
        [(stage, state, count) for stage, state, count in children],
        [(name, key) for name, key in db.json("records_of_job", id=job.id, limit=SHOWN)],
        about.parent_id,
        about.snapshot_id,
    )


def _attempts(db: Database, job: JobRow) -> list[Tried]:
    tries: dict[int, Tried] = {}
    lines = Journal(db).events(run_id=job.run_id, job_id=job.id, kind="job", limit=STORY_LINES)
    for line in lines:
        number = line.attempt or 0
        if line.kind == JobStarted.kind:
            tries[number] = Tried(number, line.actor, line.at, None, "running", "")
        elif number in tries and tries[number].ended_at is None and line.kind in _ENDS:
            tries[number] = msgspec.structs.replace(
                tries[number],
                ended_at=line.at,
                outcome=_ENDS[line.kind],
                detail=line.detail,
            )
    return [tries[number] for number in sorted(tries)]
