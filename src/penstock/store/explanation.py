"""Explaining: would it start now, and if not, what holds it back.

The answer is not computed beside the claim: the next turn of every worker is taken, by the same code, in
a transaction that is then undone. What would start is what was started in it.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import cast

import msgspec

from penstock.errors import Remedy, StoreLocked, UsageError
from penstock.gates.capacity import Capacity, DrainScope
from penstock.gates.lane import Lane, LaneLimits
from penstock.jobs.job import Claimed, JobState, Unit
from penstock.jobs.run import RunKind, RunState
from penstock.jobs.run_policy import policy_of
from penstock.journal.job_events import JobRetryScheduled, JobSnoozed, JobThrottled
from penstock.outlook.outlook import (
    OTHERS_FIRST,
    Case,
    NextTurn,
    Outlook,
    Rooms,
    SourceFacts,
    admitting,
    at_its_host,
    outlook_of,
)
from penstock.outlook.seen_gates import Held, JobStanding, LaneFacts, RunStanding
from penstock.settings.opening_hours import NO_HOURS, OpeningHours
from penstock.store.breakers import Breakers
from penstock.store.budgets import Budgets
from penstock.store.database import Database
from penstock.store.jobs import Jobs
from penstock.store.journal import Journal
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.rooms import rooms_of
from penstock.store.rows import JobRow, RunRow, SourceRow
from penstock.store.runs import Runs
from penstock.store.sources import Sources
from penstock.store.turn.claim import ready_lanes
from penstock.store.turn.memory import Memory
from penstock.store.turn.turn import start_work, wake_due

# It needs every lock of a turn. Where many work at once it may have to let go and ask again: nothing is lost.
TRIES = 4
# Of those that are before a job, so many are counted.
COUNT_LIMIT = 10_000
# Among so many of its last events is the one that says what a job waits for.
LAST_EVENTS = 20
_WAITS = frozenset({JobSnoozed.kind, JobRetryScheduled.kind, JobThrottled.kind})


class _Undone(Exception):
    """Ends the transaction without a trace, and carries what was seen in it."""

    def __init__(self, outlook: Outlook) -> None:
        super().__init__("undone")
        self.outlook = outlook


class _Case(msgspec.Struct, frozen=True):
    """What is asked about, as its rows are."""

    source: SourceRow
    run: RunRow | None = None
    job: JobRow | None = None

    @property
    def unit(self) -> Unit:
        return cast(Unit, self.job.unit) if self.job else "page"

    @property
    def scope(self) -> DrainScope | None:
        """As whose lanes it is seen: those of drains, if its run is prepared for them."""
        run = self.run
        return DrainScope(run.id) if run is not None and run.for_drains else None

    @property
    def may_start(self) -> bool:
        return (
            self.job is not None
            and self.run is not None
            and self.job.state is JobState.QUEUED
            and self.run.state in (RunState.QUEUED, RunState.RUNNING)
        )


class Explanation(Noun):
    """The turn that is taken and undone."""

    def __init__(self, db: Database, memory: Memory) -> None:
        super().__init__(db)
        self._memory = memory

    def explain(
        self,
        limits: Mapping[int, LaneLimits],
        whole: Capacity,
        *,
        source: str | None = None,
        run_id: int | None = None,
        job_id: int | None = None,
        hours: Mapping[str, OpeningHours] = NO_HOURS,
    ) -> Outlook:
        """Whether this source, run or job would start in the next turn of the workers that are alive.

        `whole` is what a worker can take on when nothing runs in it; `hours` are those of hosts.
        """
        look = partial(self._undone, limits, whole, source, run_id, job_id)
        outlook = self._patiently(look)
        return at_its_host(outlook, self._host_of(outlook), hours)

    def _patiently(self, look: Callable[[], Outlook]) -> Outlook:
        for _ in range(TRIES - 1):
            with suppress(StoreLocked):
                return look()
        return look()

    def _undone(
        self,
        limits: Mapping[int, LaneLimits],
        whole: Capacity,
        source: str | None,
        run_id: int | None,
        job_id: int | None,
    ) -> Outlook:
        try:
            with self._db.writing() as now:
                raise _Undone(self._look(now, limits, whole, source, run_id, job_id))
        except _Undone as undone:
            return undone.outlook

    def _look(
        self,
        now: float,
        limits: Mapping[int, LaneLimits],
        whole: Capacity,
        source: str | None,
        run_id: int | None,
        job_id: int | None,
    ) -> Outlook:
        self._keep_order()
        ledger = Ledger(self._db, now)
        # One memory for all of it: what is woken here may lie behind a floor, which waking lowers.
        memory = copy.deepcopy(self._memory)
        wake_due(self._db, ledger, memory.floors, now)
        ledger.write()
        alive, rooms = rooms_of(self._db, now, whole)
        case = self._case(source, run_id, job_id)
        if case.may_start:
            lanes, taken = self._rehearse(ledger, memory, limits, rooms, case)
            if job_id is None:
                case = self._likelier(case, taken, is_of_run=run_id is not None)
            return self._seen(case, lanes, taken, NextTurn(now, alive, rooms))
        lane = self._pretended(now, memory, limits, case)
        return self._seen(case, [lane], [], NextTurn(now, alive, rooms))

    def _keep_order(self) -> None:
        """Lock all that the turns could lock and wait for, in the order that everybody keeps.

        They are several turns in one transaction: one by one, they would lock a second time what comes first.
        """
        if self._db.is_shared:
            known: dict[str, int] = self._db.json("source_ids")
            self._db.lock_lanes(sorted(known.values()))
            self._db.lock_runs(sorted(self._db.json("startable_runs")))

    # What is asked about.

    def _case(self, source: str | None, run_id: int | None, job_id: int | None) -> _Case:
        if job_id is not None:
            return self._case_of_job(job_id)
        if run_id is not None:
            run = Runs(self._db).get(run_id)
            if run is None:
                raise UsageError(
                    f"there is no run {run_id}", code="no_run", remedy=Remedy("runs.list")
                )
            return _Case(self._source_row(run.source), run, self._next_job(run_id=run_id))
        row = self._source_row(source or "")
        job = self._next_job(source_id=row.id)
        if job is None:
            return _Case(row)
        return _Case(row, Runs(self._db).get(job.run_id), job)

    def _case_of_job(self, job_id: int) -> _Case:
        job = Jobs(self._db).get(job_id)
        if job is None:
            raise UsageError(f"there is no job {job_id}", code="no_job", remedy=Remedy("jobs.list"))
        return _Case(self._source_row(job.source), Runs(self._db).get(job.run_id), job)

    def _source_row(self, key: str) -> SourceRow:
        found = next((row for row in Sources(self._db).all() if row.key == key), None)
        if found is None:
            raise UsageError(
                f"there is no source {key!r}", code="no_source", remedy=Remedy("sources.list")
            )
        return found

    def _next_job(self, run_id: int | None = None, source_id: int | None = None) -> JobRow | None:
        """The job that is likely to be the next one: queued, else waiting, held, running."""
        for query in ("first_queued", "first_waiting", "first_held", "first_running"):
            found = self._db.value(query, run_id=run_id, source_id=source_id)
            if found is not None:
                return Jobs(self._db).get(found)
        return None

    # The turn that is not taken.

    def _rehearse(
        self,
        ledger: Ledger,
        known: Memory,
        limits: Mapping[int, LaneLimits],
        rooms: Rooms,
        case: _Case,
    ) -> tuple[list[Lane], list[Claimed]]:
        """The lanes as they are, and which jobs the next turns of these workers would start."""
        admits = admitting(case.job.deaths if case.job else 0, rooms)
        lanes = ready_lanes(self._db, limits, known.floors, admits, scope=case.scope)
        taken: list[Claimed] = []
        for worker, capacity in rooms:
            if capacity.slots > 0:
                memory = copy.deepcopy(known)
                claimed, _ = start_work(self._db, memory, ledger, worker, capacity, limits)
                ledger.write()
                taken += claimed
        return lanes, taken

    def _likelier(self, case: _Case, taken: Sequence[Claimed], is_of_run: bool) -> _Case:
        """Of a source or a run: the job of it that would start, if one does."""
        own = [
            job
            for job in taken
            if job.source_id == case.source.id
            and (not is_of_run or (case.run is not None and job.run_id == case.run.id))
        ]
        if not own or (case.job is not None and case.job.id in {job.id for job in own}):
            return case
        row, run = Jobs(self._db).get(own[0].id), Runs(self._db).get(own[0].run_id)
        if row is None or run is None:
            return case
        # As it was before it was started in this transaction.
        before = msgspec.structs.replace(row, state=JobState.QUEUED, worker=None)
        return _Case(case.source, run, before)

    def _pretended(
        self, now: float, memory: Memory, limits: Mapping[int, LaneLimits], case: _Case
    ) -> Lane:
        """The lane as it would be, had it a job that could start."""
        kind = case.run.kind if case.run else RunKind.FULL
        cpu, memory_mb = self._needs(case)
        self._db.do("pretend_run", source_id=case.source.id, kind=kind, now=now)
        self._db.do("pretend_stage", unit=case.unit, cpu=cpu, memory_mb=memory_mb)
        found = ready_lanes(self._db, limits, memory.floors, sources=[case.source.id])
        return next(lane for lane in found if lane.source_id == case.source.id)

    def _needs(self, case: _Case) -> tuple[float, float]:
        if case.job is None:
            return 0.0, 0.0
        _, cpu, memory_mb, _ = self._db.rows("job_needs", id=case.job.id)[0]
        return cpu, memory_mb

    # What was seen.

    def _seen(
        self, rows: _Case, lanes: Sequence[Lane], taken: Sequence[Claimed], turn: NextTurn
    ) -> Outlook:
        lane = next((each for each in lanes if each.source_id == rows.source.id), None)
        job = rows.job
        if job is not None:
            is_picked = job.id in {each.id for each in taken}
            turn = dataclasses.replace(
                turn, is_picked=is_picked, behind=lambda: self._who_is_before(job, taken)
            )
        return outlook_of(self._facts(rows), lane, turn)

    def _facts(self, rows: _Case) -> Case:
        source = SourceFacts(
            rows.source.id,
            self._lane_facts(rows.source),
            rows.source.degraded_at,
            rows.source.degraded_reason,
            rows.source.next_run_at,
        )
        run = None if rows.run is None else self._run_facts(rows.run, rows.source)
        kind = RunKind.FULL if rows.run is None else rows.run.kind
        if rows.job is None:
            return Case(source, run, kind=kind)
        job = self._job_facts(rows.job)
        return Case(source, run, job, kind, rows.job.stage, rows.unit, rows.job.deaths)

    def _who_is_before(self, job: JobRow, taken: Sequence[Claimed]) -> str:
        """Who comes before a job that nothing but that holds back."""
        _, _, _, rank = self._db.rows("job_needs", id=job.id)[0]
        where = {"run_id": job.run_id, "stage": job.stage, "rank": rank, "id": job.id}
        before = int(self._db.value("jobs_before", limit=COUNT_LIMIT, **where))
        before += sum((each.run_id, each.stage) == (job.run_id, job.stage) for each in taken)
        if not before:
            return OTHERS_FIRST
        many = f"more than {COUNT_LIMIT:,}" if before >= COUNT_LIMIT else f"{before:,}"
        return f"{many} of its stage come before it"

    def _run_facts(self, run: RunRow, source: SourceRow) -> RunStanding:
        actor, reason, since = run.actor, run.reason, run.finished_at or run.created_at
        if run.state not in (RunState.QUEUED, RunState.RUNNING):
            found = Journal(self._db).events(run_id=run.id, kind=f"run.{run.state}", limit=1)
            if found:
                actor, reason, since = found[-1].actor, found[-1].detail, found[-1].at
        is_refused = source.degraded_at is not None and not policy_of(run.kind).runs_when_degraded
        is_stopped = run.state is RunState.PARTIAL and run.end_reason == "budget"
        goes_on_at = self._budgets_begin_anew_at(run.source, run.id) if is_stopped else None
        about = (run.id, run.state, run.source, since, actor, reason, is_refused, goes_on_at)
        return RunStanding(*about, run.for_drains, run.options.by_release)

    def _job_facts(self, job: JobRow) -> JobStanding:
        actor, reason, due_at = "", job.error or "", job.due_at
        if job.state is JobState.QUARANTINED and job.kind == "budget":
            due_at = self._budgets_begin_anew_at(job.source, job.run_id)
        if job.state is JobState.WAITING:
            reason = self._put_off(job).why or reason
        if job.state in (JobState.HELD, JobState.CANCELLED):
            kind = f"job.{job.state}"
            found = Journal(self._db).events(run_id=job.run_id, job_id=job.id, kind=kind, limit=1)
            if found:
                actor, reason = found[-1].actor, found[-1].detail
        return JobStanding(job.id, job.state, job.at, due_at, job.worker or "", actor, reason)

    def _put_off(self, job: JobRow) -> JobSnoozed:
        """How its last attempt was put off without having failed; empty if it has failed."""
        found = Journal(self._db).events(
            run_id=job.run_id, job_id=job.id, kind="job", limit=LAST_EVENTS
        )
        last = next((event for event in reversed(found) if event.kind in _WAITS), None)
        if last is None or last.kind != JobSnoozed.kind:
            return JobSnoozed()
        return msgspec.convert(last.data, JobSnoozed)

    def _host_of(self, outlook: Outlook) -> str:
        """The host whose hours the job waits for, if it was turned away there."""
        is_held_back = any(gate.name == "job" and not gate.is_open for gate in outlook.gates)
        found = self._db.value("host_wait_of", id=outlook.job_id) if is_held_back else None
        return "" if found is None else str(found)

    def _budgets_begin_anew_at(self, source: str, run_id: int) -> float | None:
        """When what budgets have stopped is sent back; None if a person has to."""
        scopes = ("project", f"source:{source}", f"run:{run_id}")
        times = [row.resets_at for row in Budgets(self._db).exhausted() if row.scope in scopes]
        known = [at for at in times if at is not None]
        return max(known) if known and len(known) == len(times) else None

    def _lane_facts(self, source: SourceRow) -> LaneFacts:
        own = next(
            (row for row in Breakers(self._db).all() if row.key == f"source:{source.key}"), None
        )
        return LaneFacts(
            source.key,
            tuple(
                Held(row.scope, row.at, row.actor, row.reason)
                for row in Sources(self._db).holds()
                if row.scope in ("", source.key)
            ),
            source.paused_at,
            source.pause_reason,
            source.cooldown_reason,
            own.since if own else None,
            own.reason if own else "",
        )
