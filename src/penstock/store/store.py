"""The seam: every verb a store must offer, in the words of the domain.

One contract suite (`tests/contract`) runs against every store. Verbs are synchronous and called from
one thread; each is durable when it returns, and each is one transaction unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock.gates.admission import NO_REPORT, Report
from penstock.gates.capacity import Capacity as Capacity  # noqa: PLC0414 - imported from here, too
from penstock.gates.lane import LaneLimits
from penstock.gates.loaded import Loaded, WorkerCode
from penstock.gates.rates import Verdict, Want
from penstock.jobs.account import Account
from penstock.jobs.job import Claimed, JobState, NewJob
from penstock.jobs.outcome import Flush, Settlement
from penstock.jobs.run import NO_OPTIONS, Plan, RunFacts, RunKind, RunOptions
from penstock.journal.condition import Condition
from penstock.journal.run_events import RunCommitted, RunUndone
from penstock.outlook.outlook import Outlook
from penstock.settings.budget import Bound
from penstock.settings.opening_hours import NO_HOURS, OpeningHours
from penstock.store.entries import CauseRow, EntryFilter, EntryRow
from penstock.store.kpis import KpiReport
from penstock.store.logs import LogLine, LogRow
from penstock.store.rejected import Redriven, RejectFilter, RejectRow
from penstock.store.rows import (
    Admits,
    BudgetRow,
    CauseOfRun,
    Cursor,
    EventRow,
    HoldRow,
    JobDetail,
    JobRow,
    LeaderRow,
    Overview,
    RecordRow,
    RunRow,
    SegmentEnd,
    SnapshotRow,
    SourceRow,
    WorkerRow,
)
from penstock.store.signals import SignalRow

if TYPE_CHECKING:
    from penstock.schedules.auto import Ended, Level, Standing
    from penstock.store.announcing import Announcement, Sooner
    from penstock.store.breakers import BreakerRow, HostTold
    from penstock.store.cadences import CadenceMove, CadenceRow
    from penstock.store.checkpoints import CheckpointMove, CheckpointRow
    from penstock.store.coverage import CoveredRow
    from penstock.store.delivering import DeliveryRow, QueuedRow, StandingRow, Start
    from penstock.store.health import HealthRow
    from penstock.store.outbox import OutboxRow, Parcel
    from penstock.store.pages import PageRow
    from penstock.store.promises import BreachRow, Promise, Verification
    from penstock.store.replays import (
        Committed,
        Rejects,
        ReplayedJob,
        ReplayRow,
        Scope,
        StagedChange,
        Undecided,
    )
    from penstock.store.scheduling import (
        DueRow,
        Passed,
        Passing,
        Planned,
        ScheduleRow,
        TickCount,
        TickRow,
        VersionRow,
    )
    from penstock.store.stories import Story
    from penstock.store.undoing import Later, UndoChange, Undone


@dataclass(frozen=True, slots=True)
class Kept:
    """A payload that was fetched for a job and lies in a segment, to be referred to by this id."""

    id: int
    job_id: int
    run_id: int
    url: str
    status: int
    headers: Mapping[str, str]
    fetched_at: float
    hash: str
    segment: str
    offset: int
    length: int
    # Where the redirects ended; '' is the url itself.
    final_url: str = ""
    # This content was stored before, at a place where it can't be read any more.
    mends: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn did: which ends were accepted, which came too late, what is to be started.

    Times are the store's: `now` is when the turn was taken, by the only clock that counts. For `rest_s`
    the worker is to leave what there is to others.
    """

    settled: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    claimed: list[Claimed] = field(default_factory=list)
    snapshot_ids: list[int] = field(default_factory=list)
    ended_runs: list[int] = field(default_factory=list)
    next_due_at: float | None = None
    is_buried: bool = False
    now: float = 0.0
    closed_hosts: Mapping[str, float] = field(default_factory=dict)
    rest_s: float = 0.0
    # Jobs whose ends were not looked at, because somebody else keeps their run locked: to be sent again.
    postponed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Enqueued:
    job_id: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class JobFilter:
    run_id: int | None = None
    source: str | None = None
    stage: str | None = None
    states: tuple[JobState, ...] = ()
    limit: int = 50
    after_id: int = 0


@dataclass(frozen=True, slots=True)
class Keep:
    """How long finished things are kept, in seconds; `None` keeps them for ever."""

    jobs_s: float | None
    events_s: float | None
    versions_s: float | None
    snapshots_s: float | None
    rejects_s: float | None = None
    logs_s: float | None = None
    runs_s: float | None = None


class Reserve(Protocol):
    """Space that can be given back when there is no more, so that finished work can be written."""

    def hold(self) -> bool: ...

    def release(self) -> None: ...


class Store(Protocol):
    """A durable store of runs, jobs, records and the journal."""

    def close(self) -> None: ...

    def hurried(self, patience_s: float) -> AbstractContextManager[None]: ...

    def give_up(self) -> None: ...

    def reopen(self) -> None: ...

    @property
    def reserve(self) -> Reserve: ...

    @property
    def is_shared(self) -> bool: ...

    @property
    def name(self) -> str: ...

    # The loop.

    def turn(
        self,
        worker: str,
        ends: Sequence[Settlement | Flush],
        capacity: Capacity,
        limits: Mapping[int, LaneLimits],
        kept: Sequence[Kept] = (),
    ) -> Turn: ...

    def has_changed(self) -> bool: ...

    @property
    def listener(self) -> int | None:
        """What becomes readable when something may have changed; None while nobody listens."""
        ...

    def reserve_places(
        self, wants: Sequence[Want], report: Report = NO_REPORT
    ) -> list[Verdict]: ...

    def held_at_hosts(self) -> dict[str, float]: ...

    # Budgets.

    def budgets(self, run_id: int | None = None) -> list[BudgetRow]: ...

    def exhausted_budgets(self) -> list[BudgetRow]: ...

    def renew_budgets(self, bounds: Sequence[Bound], limit: int = 1000) -> int: ...

    def set_aside(
        self, run_id: int, stage: str, reason: str, actor: str, limit: int = 1000
    ) -> int: ...

    def close_hosts(self, closings: Mapping[str, float]) -> None: ...

    def add_log_lines(self, lines: Sequence[LogLine]) -> None: ...

    def log_of_run(
        self, run_id: int, after_id: int = 0, limit: int = 500, before_id: int | None = None
    ) -> list[LogRow]: ...

    def log_of_job(
        self, job_id: int, after_id: int = 0, limit: int = 500, before_id: int | None = None
    ) -> list[LogRow]: ...

    def plan_hours(self, definitions: Mapping[str, str], actor: str) -> int: ...

    # Breakers.

    def breakers(self) -> list[BreakerRow]: ...

    def breaker_key(self, name: str, source: str) -> str: ...

    def open_breaker(self, key: str, for_s: float, actor: str, reason: str) -> bool: ...

    def close_breaker(self, key: str, actor: str, reason: str) -> bool: ...

    def watched_hosts(self) -> dict[str, tuple[str, float]]: ...

    def note_hosts(self, told: Mapping[str, HostTold]) -> dict[str, tuple[str, float]]: ...

    def admit_hosts(self, hosts: Sequence[str]) -> list[Verdict]: ...

    # Runs and jobs.

    def ensure_sources(self, keys: Sequence[str]) -> dict[str, int]: ...

    def start_run(
        self,
        source_id: int,
        kind: RunKind,
        plan: Plan,
        pipeline_version: str,
        *,
        key: str,
        actor: str,
        reason: str = "",
        options: RunOptions = NO_OPTIONS,
        of_run_id: int | None = None,
        is_draft: bool = False,
        joins_active: bool = False,
    ) -> tuple[int, bool]: ...

    def run_facts(self, run_ids: Sequence[int]) -> dict[int, RunFacts]: ...

    def enqueue(self, run_id: int, jobs: Sequence[NewJob]) -> list[Enqueued]: ...

    def start_draft(self, run_id: int, actor: str, reason: str) -> bool: ...

    def start_recovered(self, actor: str) -> list[int]: ...

    def continue_run(
        self, run_id: int, plan: Plan, pipeline_version: str, actor: str, reason: str
    ) -> tuple[int, bool]: ...

    def hold(self, scope: str, actor: str, reason: str) -> bool: ...

    def unhold(self, scope: str, actor: str, reason: str) -> bool: ...

    def holds(self) -> list[HoldRow]: ...

    def hold_job(self, job_id: int, actor: str, reason: str) -> bool: ...

    def unhold_job(self, job_id: int, actor: str, reason: str) -> bool: ...

    def pause_source(self, source_id: int, actor: str, reason: str) -> bool: ...

    def resume_source(self, source_id: int, actor: str, reason: str) -> bool: ...

    def pause_run(self, run_id: int, actor: str, reason: str) -> bool: ...

    def resume_run(self, run_id: int, actor: str, reason: str) -> bool: ...

    def cancel_run(self, run_id: int, actor: str, reason: str) -> bool: ...

    def sweep_cancelled(self, limit: int = 2000) -> int: ...

    def cancel_job(self, job_id: int, actor: str, reason: str) -> bool: ...

    def retry_job(self, job_id: int, actor: str, reason: str) -> bool: ...

    def retry_failed(self, run_id: int, actor: str, reason: str) -> int: ...

    # Quarantine.

    def entries(
        self,
        wanted: EntryFilter,
        limit: int | None = None,
        after: tuple[float, int] | None = None,
    ) -> Iterator[EntryRow]: ...

    def entry(self, job_id: int) -> EntryRow | None: ...

    def count_entries(self, wanted: EntryFilter) -> int: ...

    def causes(self, source: str | None = None, limit: int = 50) -> list[CauseRow]: ...

    def release_entries(self, wanted: EntryFilter, actor: str, reason: str) -> Iterator[int]: ...

    def discard_entries(self, wanted: EntryFilter, actor: str, reason: str) -> Iterator[int]: ...

    def close_answered_entries(self) -> int: ...

    def expire_entries(self, keep_s: float, limit: int = 500) -> int: ...

    def note_entry(self, job_id: int, text: str, actor: str) -> None: ...

    # Workers.

    def register(
        self,
        worker: str,
        host: str,
        pid: int,
        version: str,
        slots: int = 0,
        admits: Admits = "all",
    ) -> None: ...

    def beat(self, worker: str) -> bool: ...

    def bury(self, worker: str, reason: str, died_at: float | None = None) -> list[int]: ...

    def bury_if_expired(self, worker: str, reason: str) -> list[int] | None: ...

    def sign_off(self, worker: str, reason: str = "drained") -> list[int]: ...

    def expired_workers(self) -> list[str]: ...

    def has_suspects(self) -> bool: ...

    def workers(self) -> list[WorkerRow]: ...

    def still_owned(self, worker: str, job_ids: Sequence[int]) -> set[int]: ...

    def halted(self, worker: str, job_ids: Sequence[int]) -> dict[int, str]: ...

    def announce(self, worker: str, loaded: Loaded, parent_pid: int) -> None: ...

    def worker_codes(self) -> list[WorkerCode]: ...

    def restamp(self, run_id: int, known: str, version: str, actor: str) -> bool: ...

    def startable_stages(
        self, within_s: float, outside: Sequence[int] = ()
    ) -> list[tuple[int, str]]: ...

    def jobs_of(self, worker: str) -> set[tuple[int, int]]: ...

    # Upkeep.

    def convert_sentences(self, limit: int = 5000) -> int: ...

    def prune(self, keep: Keep, limit: int = 1000) -> int: ...

    def tidy(self) -> None: ...

    def quick_check(self) -> None: ...

    def check(self) -> list[str]: ...

    def segment_ends(self, after: str = "", limit: int = 1000) -> list[SegmentEnd]: ...

    def payloads(self, segment: str) -> list[tuple[str, int, int]]: ...

    def refuse_if_replaced(self) -> None: ...

    def segments_in_use(self, segments: Sequence[str]) -> set[str]: ...

    def drop_unused_payloads(self, after: str = "", limit: int = 1000) -> str | None: ...

    def backup(self, target: Path) -> Iterator[float]: ...

    def note_restored(self, actor: str, backup: str) -> None: ...

    def claim_for(self, project: str, place: str, another: str) -> None: ...

    # Reading.

    def now(self) -> float: ...

    def overview(self) -> Overview: ...

    def has_startable(self, within_s: float, outside: Sequence[int] = ()) -> bool: ...

    def sources(self) -> list[SourceRow]: ...

    def runs(
        self,
        source: str | None = None,
        active_only: bool = False,
        limit: int = 20,
        before_id: int | None = None,
    ) -> list[RunRow]: ...

    def run(self, run_id: int) -> RunRow | None: ...

    def runs_by_id(self, run_ids: Sequence[int]) -> list[RunRow]: ...

    def run_plan(self, run_id: int) -> Plan: ...

    def jobs(self, wanted: JobFilter) -> list[JobRow]: ...

    def job(self, job_id: int) -> JobRow | None: ...

    def job_detail(self, job_id: int) -> JobDetail: ...

    def events(
        self,
        source: str | None = None,
        run_id: int | None = None,
        job_id: int | None = None,
        after_id: int | None = None,
        limit: int = 50,
        kind: str | None = None,
        where: Sequence[Condition] = (),
        before_id: int | None = None,
    ) -> list[EventRow]: ...

    def follow_kinds(
        self, cursor: Cursor | None, kinds: Sequence[str], limit: int = 500
    ) -> tuple[list[EventRow], Cursor]: ...

    def follow(
        self,
        cursor: Cursor | None,
        source: str | None = None,
        run_id: int | None = None,
        job_id: int | None = None,
        limit: int = 500,
        kind: str | None = None,
        where: Sequence[Condition] = (),
    ) -> tuple[list[EventRow], Cursor]: ...

    def collections(self) -> list[tuple[str, int]]: ...

    def records(
        self, collection: str, after_key: str = "", limit: int | None = None
    ) -> list[RecordRow]: ...

    def each_record(
        self,
        collection: str,
        *,
        source_id: int | None = None,
        run_id: int | None = None,
        since: float | None = None,
        after_key: str = "",
        limit: int | None = None,
    ) -> Iterator[RecordRow]: ...

    def versions(self, collection: str, key: str) -> list[RecordRow]: ...

    def checkpoints(self, source_id: int) -> dict[str, Any]: ...

    def snapshot_of(self, job_id: int, url: str) -> SnapshotRow | None: ...

    def last_snapshot(self, url: str) -> SnapshotRow | None: ...

    def pages_of(self, job_id: int, limit: int = 20) -> list[SnapshotRow]: ...

    def pages_at(self, url: str, limit: int = 20) -> list[SnapshotRow]: ...

    def last_job_of(self, source_id: int, stage: str, key: str) -> int | None: ...

    def page(self, source_id: int, url: str) -> PageRow | None: ...

    def forget_pages(
        self, unseen_for_s: float, after: tuple[int, str] = (0, ""), limit: int = 2000
    ) -> tuple[int, str] | None: ...

    def places(self, hashes: Sequence[str]) -> dict[str, tuple[str, int, int]]: ...

    def closed_hosts(self) -> dict[str, float]: ...

    def health(self, source_id: int) -> HealthRow: ...

    def recover_source(self, source_id: int, actor: str, reason: str) -> bool: ...

    # Replays.

    def runs_since(self, source_id: int, since_at: float) -> list[int]: ...

    def replay_scope(self, run_ids: Sequence[int]) -> list[Scope]: ...

    def replayed_jobs(
        self,
        run_id: int,
        stage: str,
        after_key: str | None,
        *,
        quarantined_only: bool = False,
        limit: int = 1000,
    ) -> list[ReplayedJob]: ...

    def replayed_snapshot(
        self,
        url: str,
        *,
        of_run_id: int | None,
        since_at: float | None,
        source_id: int,
        stage: str,
        key: str,
        snapshot_id: int | None,
        is_sole: bool = False,
    ) -> SnapshotRow | None: ...

    def replay_state(self, run_id: int) -> ReplayRow: ...

    def undecided(self, limit: int = 100) -> list[Undecided]: ...

    def has_staged(self, run_id: int) -> bool: ...

    def seal_replay(self, run_id: int, limit: int = 1000) -> bool: ...

    def staged_changes(
        self, run_id: int, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> list[StagedChange]: ...

    def staged_same(self, run_id: int) -> int: ...

    def reject_shift(
        self, these: Sequence[int], those: Sequence[int], replay_id: int, limit: int = 20
    ) -> Rejects: ...

    def begin_commit(self, run_id: int, actor: str, reason: str) -> None: ...

    def commit_batch(
        self,
        run_id: int,
        after: tuple[str, str] = ("", ""),
        *,
        is_forced: bool = False,
        limit: int = 500,
    ) -> Committed: ...

    def end_commit(self, run_id: int, actor: str, done: RunCommitted) -> None: ...

    def drop_replay(self, run_id: int, actor: str, reason: str) -> int: ...

    def drop_old_replay(self, keep_s: float, limit: int = 5000) -> int: ...

    # Undo.

    def undo_changes(
        self, run_id: int, after_id: int = 0, limit: int = 500
    ) -> list[UndoChange]: ...

    def changed_since(self, run_id: int, limit: int = 20) -> Later: ...

    def is_undoing(self, run_id: int) -> bool: ...

    def begin_undo(self, run_id: int, actor: str, reason: str) -> int: ...

    def undo_batch(
        self, run_id: int, undo_run_id: int, after_id: int = 0, limit: int = 500
    ) -> Undone: ...

    def end_undo(self, run_id: int, actor: str, done: RunUndone) -> None: ...

    # Checkpoints.

    def checkpoint_rows(self, source_id: int) -> list[CheckpointRow]: ...

    def checkpoint_history(
        self, source_id: int, partition: str, limit: int = 1000, before: int | None = None
    ) -> list[CheckpointMove]: ...

    def run_cursors(self, run_id: int) -> dict[str, Any]: ...

    def newest_cursors(self, run_ids: Sequence[int]) -> dict[int, str]: ...

    def has_windows(self, source_id: int, partition: str) -> bool: ...

    def units_since(self, source_id: int, partition: str, since: float) -> int: ...

    def rewind_checkpoint(
        self,
        source_id: int,
        partition: str,
        target: CheckpointMove,
        *,
        actor: str,
        reason: str,
        is_forced: bool = False,
    ) -> None: ...

    def covered(
        self, source_id: int, partitions: Sequence[str], start_at: float, end_at: float
    ) -> list[CoveredRow]: ...

    def backlog(self, run_id: int, planner: str) -> tuple[int, int]: ...

    # Rejects and accounts.

    def rejects(
        self, wanted: RejectFilter, limit: int = 50, before_id: int | None = None
    ) -> list[RejectRow]: ...

    def count_rejects(self, wanted: RejectFilter) -> int: ...

    def stages_of_rejects(self, wanted: RejectFilter) -> list[str]: ...

    def reject_item(self, reject_id: int) -> str: ...

    def rejects_by_code(self, run_id: int) -> dict[str, int]: ...

    def redrive(
        self,
        source_id: int,
        plan: Plan,
        pipeline_version: str,
        wanted: RejectFilter,
        *,
        key: str,
        actor: str,
        reason: str,
        limit: int = 10_000,
    ) -> Redriven | None: ...

    def account(self, row: RunRow) -> Account: ...

    def failures_by_kind(self, run_id: int) -> dict[str, int]: ...

    def failures_by_cause(self, run_id: int, limit: int = 10) -> list[CauseOfRun]: ...

    def runs_made_of(self, run_id: int) -> list[RunRow]: ...

    def kpis(self, since: float, source_id: int | None = None) -> KpiReport: ...

    # Signals.

    def signals(self, after_id: int = 0, limit: int = 500) -> list[SignalRow]: ...

    def last_signals(
        self, name: str | None = None, limit: int = 50, before_id: int | None = None
    ) -> list[SignalRow]: ...

    def raise_signal(
        self, name: str, data: Any, *, actor: str, source_id: int = 0, key: str | None = None
    ) -> tuple[int, bool]: ...

    def open_signals(self, limit: int = 500) -> list[SignalRow]: ...

    def deliver(
        self,
        signal_ids: Sequence[int],
        queued: Sequence[tuple[int, tuple[int, str]]],
        waiting: Sequence[tuple[int, tuple[int, str]]] = (),
        needs: Mapping[tuple[int, str], frozenset[int]] | None = None,
    ) -> None: ...

    def regather(self, needs: Mapping[tuple[int, str], frozenset[int]]) -> None: ...

    def has_to_deliver(self) -> bool: ...

    def queued_deliveries(self) -> list[QueuedRow]: ...

    def start_delivery(self, row: QueuedRow, start: Start) -> int | None: ...

    def skip_delivery(self, row: QueuedRow, reason: str) -> None: ...

    def put_off_delivery(self, row: QueuedRow, reason: str) -> None: ...

    def deliveries(self, signal_ids: Sequence[int]) -> list[DeliveryRow]: ...

    def standing_deliveries(
        self, source_id: int, limit: int = 100
    ) -> tuple[list[StandingRow], int]: ...

    # Files that land.

    def landed(self, source_id: int, schedule: str) -> dict[str, str]: ...

    def land(
        self, source_id: int, schedule: str, files: Mapping[str, str], actor: str
    ) -> int | None: ...

    def note_gone(self, source_id: int, schedule: str, paths: Sequence[str]) -> None: ...

    # Hooks.

    def plan_hooks(self, hooks: Sequence[tuple[str, str, int]]) -> None: ...

    def claim_outbox(self, limit: int, lease_s: float) -> list[Parcel]: ...

    def accept_outbox(self, parcel: Parcel, actor: str) -> None: ...

    def refuse_outbox(
        self, parcel: Parcel, error: str, retry_in_s: float | None, actor: str
    ) -> None: ...

    def retry_outbox(self, outbox_id: int, actor: str, reason: str) -> bool: ...

    def outbox(
        self, *, undelivered_only: bool = False, limit: int = 50, before_id: int | None = None
    ) -> list[OutboxRow]: ...

    # Streams.

    def beat_stream(self, worker: str, job_id: int, attempt: int) -> bool: ...

    def stream_alive_at(self, source_id: int) -> float | None: ...

    def running_streams(self) -> int: ...

    # Explaining.

    def explain(
        self,
        limits: Mapping[int, LaneLimits],
        whole: Capacity,
        *,
        source: str | None = None,
        run_id: int | None = None,
        job_id: int | None = None,
        hours: Mapping[str, OpeningHours] = NO_HOURS,
    ) -> Outlook: ...

    def outlooks(
        self,
        limits: Mapping[str, LaneLimits],
        whole: Capacity,
        sources: Sequence[str] | None = None,
        hours: Mapping[str, OpeningHours] = NO_HOURS,
    ) -> list[Outlook]: ...

    def story(self, job_id: int) -> Story: ...

    # Leaders.

    def lead(self, name: str, holder: str, ttl_s: float, term: int = 0) -> Term | None: ...

    def resign(self, name: str, holder: str, term: int) -> bool: ...

    def leaders(self) -> list[LeaderRow]: ...

    # Schedules.

    def plan_schedules(self, planned: Iterable[Planned], actor: str = ...) -> int: ...

    def next_look_at(self) -> float | None: ...

    def due_schedules(self, now: float, limit: int = ...) -> list[DueRow]: ...

    def put_off(self, rows: Sequence[DueRow], until: float) -> None: ...

    def has_overdue_ticks(self) -> bool: ...

    def late_fires(self, since: float, grace_s: float) -> int: ...

    def pass_ticks(self, passing: Passing) -> Passed | None: ...

    def schedules(self, source_id: int | None = None) -> list[ScheduleRow]: ...

    def ticks(
        self,
        source_id: int,
        name: str,
        limit: int = 20,
        *,
        before: float = ...,
        with_missed: bool = True,
    ) -> list[TickRow]: ...

    def tick_counts(self, source_id: int, since: float = 0.0) -> list[TickCount]: ...

    def schedule_versions(self, source_id: int) -> list[VersionRow]: ...

    # Cadences.

    def cadences(self, source_id: int | None = None) -> list[CadenceRow]: ...

    def begin_cadences(self, cadences: Sequence[tuple[int, Level]]) -> None: ...

    def runs_for_cadence(self, places: Mapping[int, int]) -> dict[int, list[Ended]]: ...

    def note_cadence(self, row: CadenceRow, standing: Standing) -> bool: ...

    def propose_cadence(
        self,
        row: CadenceRow,
        standing: Standing,
        level: Level,
        reason: str,
        actor: str,
        words: Mapping[str, str] | None = None,
    ) -> bool: ...

    def move_cadence(self, row: CadenceRow, move: CadenceMove, actor: str) -> bool: ...

    # Announcements.

    def announcements(self, source_id: int) -> list[float]: ...

    def open_announcements(self, limit: int = 500) -> list[Announcement]: ...

    def bring_forward(self, heard: Sequence[Announcement], sooner: Sequence[Sooner]) -> int: ...

    # Promises.

    def watch_promises(self, promises: Sequence[Promise]) -> int: ...

    def verification(self, source_id: int) -> Verification: ...

    def breaches(
        self, source_id: int | None = None, *, open_only: bool = False, limit: int = 100
    ) -> list[BreachRow]: ...


@dataclass(frozen=True, slots=True)
class Term:
    """A leader's time in office; it ends so long after it was asked for, by any clock that runs evenly."""

    number: int
    expires_in_s: float
