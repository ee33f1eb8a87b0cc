"""Rows: what a store answers with when it is asked what there is."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.gates.capacity import Admits as Admits  # noqa: PLC0414 - imported from here, too
from penstock.jobs.job import JobState
from penstock.jobs.run import NO_OPTIONS, RunKind, RunOptions, RunState


class SourceRow(msgspec.Struct, frozen=True):
    id: int
    key: str
    paused_at: float | None
    pause_reason: str
    cooldown_until: float
    cooldown_reason: str
    schedule: str
    next_run_at: float | None
    last_run_id: int | None = None
    last_state: str | None = None
    last_finished_at: float | None = None
    queued: int = 0
    running: int = 0
    waiting: int = 0
    quarantined: int = 0
    # While it is degraded, only probes of it run.
    degraded_at: float | None = None
    degraded_reason: str = ""
    bad_runs: int = 0
    good_probes: int = 0


class HoldRow(msgspec.Struct, frozen=True):
    """Maintenance: nothing of this scope starts. '' is the whole project, else a source's key."""

    scope: str
    at: float
    actor: str
    reason: str


class CauseOfRun(msgspec.Struct, frozen=True):
    """One cause for which jobs of a run are in quarantine, and the kind and error of the first of them."""

    cause: str
    jobs: int
    job_id: int
    kind: str
    error: str


class LeftOfShard(msgspec.Struct, array_like=True, frozen=True):
    """What is left to do of a stage of a run, or of a part of it; when the first of what waits is due."""

    is_queued: bool | int
    is_running: bool | int
    is_held: bool | int
    due_at: float | None

    @property
    def is_open(self) -> bool:
        return bool(self.is_queued or self.is_running or self.is_held or self.due_at is not None)


class StageRow(msgspec.Struct, frozen=True):
    """How many jobs one stage of a run has, by state."""

    stage: str
    unit: str
    queued: int
    running: int
    waiting: int
    held: int
    succeeded: int
    skipped: int
    quarantined: int
    cancelled: int


class RunUse(msgspec.Struct, frozen=True):
    """What runs have used by the measures of budgets, and the records that they brought in for it."""

    accepted: int
    requests: int
    bytes: int
    seconds: float
    money: float


class RunRow(msgspec.Struct, frozen=True):
    """A run with its options and counters."""

    id: int
    source_id: int
    source: str
    kind: RunKind
    state: RunState
    actor: str
    reason: str
    pipeline_version: str
    created_at: float
    started_at: float | None
    finished_at: float | None
    inserted: int
    updated: int
    unchanged: int
    rejected: int
    retried: int
    throttled: int
    pages: int = 0
    pages_done: int = 0
    candidates: int = 0
    queued: int = 0
    running: int = 0
    waiting: int = 0
    held: int = 0
    succeeded: int = 0
    skipped: int = 0
    quarantined: int = 0
    cancelled: int = 0
    options: RunOptions = NO_OPTIONS
    of_run_id: int | None = None
    end_reason: str = ""
    candidates_accepted: int = 0
    candidates_rejected: int = 0
    candidates_duplicate: int = 0
    candidates_passed: int = 0
    candidates_dropped: int = 0
    pages_unchanged: int = 0
    disallowed: int = 0
    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0
    money: float = 0.0
    is_accounted: bool = False
    pages_added: int = 0
    candidates_added: int = 0
    pages_missing: int = 0
    for_drains: bool = False

    @property
    def is_ended(self) -> bool:
        return self.finished_at is not None

    @property
    def dropped(self) -> int:
        """Candidates for which a step returned None."""
        return self.candidates_dropped


class JobRow(msgspec.Struct, frozen=True):
    id: int
    run_id: int
    source: str
    stage: str
    unit: str
    key: str
    state: JobState
    attempt: int
    tries: int
    throttles: int
    deaths: int
    worker: str | None
    at: float
    due_at: float | None
    error: str | None = None
    kind: str | None = None


class JobDetail(msgspec.Struct, frozen=True):
    """What is kept of one job beyond its row; the item is the JSON it was enqueued with."""

    item: str | None
    parent_id: int | None
    traceback: str


class EventRow(msgspec.Struct, frozen=True):
    """An event of the journal: `data` by the registry, `detail` the sentence that is rendered from it."""

    id: int
    at: float
    kind: str
    source: str | None
    run_id: int | None
    job_id: int | None
    attempt: int | None
    actor: str
    detail: str
    worker: str | None = None
    data: dict[str, Any] = {}
    origin: str | None = None


class Cursor(msgspec.Struct, frozen=True):
    """How far a reader of the journal has come; only its store knows how to read it."""

    seen: str = ""
    upto: str = ""
    line: int = 0


class RecordRow(msgspec.Struct, frozen=True):
    key: str
    data: Any
    score: float | None
    source: str
    run: int
    version: int
    updated_at: float
    snapshot_id: int | None = None
    pipeline_version: str = ""
    is_removed: bool = False


class WorkerRow(msgspec.Struct, frozen=True):
    id: str
    host: str
    pid: int
    version: str
    started_at: float
    lease_expires_at: float
    running: int = 0
    slots: int = 0
    admits: Admits = "all"
    scope: str = ""


class BudgetRow(msgspec.Struct, frozen=True):
    """A budget in its present period; `held` is what requests under way have reserved of it."""

    scope: str
    measure: str
    period: str
    period_at: float
    resets_at: float | None
    used: float
    bound: float
    warned: int
    held: float = 0.0


class LeaderRow(msgspec.Struct, frozen=True):
    """Who acts for all hosts in one matter, in which term, and until when by the store's clock."""

    name: str
    holder: str
    term: int
    expires_at: float


class SnapshotRow(msgspec.Struct, frozen=True):
    """A fetched page, and where its body is stored."""

    id: int
    url: str
    status: int
    headers: dict[str, str]
    fetched_at: float
    hash: str
    segment: str
    offset: int
    length: int
    final_url: str = ""
    job_id: int = 0
    run_id: int = 0


class Overview(msgspec.Struct, frozen=True):
    """The whole project in numbers, read from maintained counters only."""

    queued: int
    running: int
    waiting: int
    quarantined: int
    active_runs: int
    paused_sources: int
    workers: int
    records: int
    next_due_at: float | None


class SegmentEnd(msgspec.Struct, frozen=True):
    """A segment of the snapshots: how large it has to be for what lies in it, and how much that is."""

    segment: str
    size: int
    payloads: int
