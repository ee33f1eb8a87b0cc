"""Explaining: would it start now, and if not, what holds it back.

The answer is not computed beside the claim: the next turn of every worker is taken, by the same code, in
a transaction that is then undone. What would start is what was started in it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from penstock.counting import count
from penstock.errors import UsageError
from penstock.gates.explaining import (
    GateSeen,
    Held,
    JobFacts,
    LaneFacts,
    RunFacts,
    Stands,
    hours_gates,
    how_it_stands,
    job_gate,
    lane_gates,
    run_gate,
    workers_gate,
)
from penstock.gates.lane import Head, Lane, LaneLimits, place_of
from penstock.gates.sharing import Room
from penstock.gates.windows import NO_HOURS, Windows
from penstock.jobs.job import Claimed, JobState, Unit
from penstock.jobs.loaded import Loaded, WorkerCode
from penstock.jobs.run import ENDED_RUN_STATES, RunKind, RunState
from penstock.jobs.run_policy import policy_of
from penstock.store.breakers import Breakers
from penstock.store.budgets import Budgets
from penstock.store.claim import WARD_DEATHS, ready_lanes
from penstock.store.database import Database
from penstock.store.ledger import Ledger
from penstock.store.lifecycle import Lifecycle
from penstock.store.memory import Memory
from penstock.store.reading import Reading
from penstock.store.rows import Admits, JobRow, RunRow, SourceRow
from penstock.store.store import Capacity
from penstock.store.turn import start_work, wake_due

# Of those that are before a job, so many are counted.
COUNT_LIMIT = 10_000
# Among so many of its last events is the one that says what a job waits for.
LAST_EVENTS = 20
# A job that waits for a host's hours is due a little after they begin.
A_LITTLE_S = 60.0
PRETENDED = -1
_WAITS = frozenset({"job.snoozed", "job.retried", "job.throttled"})


class Outlook(msgspec.Struct, frozen=True):
    """What stands between a source, run or job and its next start.

    `job_id` is the job that the gates are about: the one asked for, or the next one of the source or run.
    """

    now: float
    source: str
    run_id: int | None
    job_id: int | None
    would_start: bool
    stands: Stands
    gate: str
    opens_at: float | None
    command: str
    gates: list[GateSeen]


class _Load(msgspec.Struct, frozen=True):
    id: str
    slots: int
    admits: Admits
    running: int
    cpu: float
    memory_mb: float


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
    def may_start(self) -> bool:
        return (
            self.job is not None
            and self.run is not None
            and self.job.state is JobState.QUEUED
            and self.run.state in (RunState.QUEUED, RunState.RUNNING)
        )


class Explaining(Lifecycle, Breakers, Budgets, Reading):
    """The verbs that say why."""

    _db: Database
    _memory: Memory

    def explain(
        self,
        limits: Mapping[int, LaneLimits],
        whole: Capacity,
        *,
        source: str | None = None,
        run_id: int | None = None,
        job_id: int | None = None,
        hours: Mapping[str, Windows] = NO_HOURS,
    ) -> Outlook:
        """Whether this source, run or job would start in the next turn of the workers that are alive.

        `whole` is what a worker can take on when nothing runs in it; `hours` are those of hosts.
        """
        try:
            with self._db.writing() as now:
                raise _Undone(self._look(now, limits, whole, source, run_id, job_id))
        except _Undone as undone:
            return _at_its_host(undone.outlook, hours)

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
        loads = self._db.decoded("worker_loads", list[_Load], now=now)
        codes = {code.worker: code.loaded for code in self._codes(now)}
        rooms = [(load.id, _free(load, whole, codes.get(load.id))) for load in loads]
        rooms = rooms or [("", whole)]
        case = self._case(source, run_id, job_id)
        if case.may_start:
            lanes, taken = self._rehearse(ledger, memory, limits, rooms, case)
            if job_id is None:
                case = self._likelier(case, taken, is_of_run=run_id is not None)
            return self._seen(now, case, lanes, rooms, taken, len(loads))
        lane = self._pretended(now, memory, limits, case)
        return self._seen(now, case, [lane], rooms, [], len(loads))

    def _codes(self, now: float) -> list[WorkerCode]:
        return self._db.decoded("worker_codes", list[WorkerCode], now=now)

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
            run = self.run(run_id)
            if run is None:
                raise UsageError(f"there is no run {run_id}", "penstock runs lists them")
            return _Case(self._source_row(run.source), run, self._next_job(run_id=run_id))
        row = self._source_row(source or "")
        job = self._next_job(source_id=row.id)
        if job is None:
            return _Case(row)
        return _Case(row, self.run(job.run_id), job)

    def _case_of_job(self, job_id: int) -> _Case:
        job = self.job(job_id)
        if job is None:
            raise UsageError(f"there is no job {job_id}", "penstock jobs lists them")
        return _Case(self._source_row(job.source), self.run(job.run_id), job)

    def _source_row(self, key: str) -> SourceRow:
        found = next((row for row in self.sources() if row.key == key), None)
        if found is None:
            raise UsageError(f"there is no source {key!r}", "penstock sources lists them")
        return found

    def _next_job(self, run_id: int | None = None, source_id: int | None = None) -> JobRow | None:
        """The job that is likely to be the next one: queued, else waiting, held, running."""
        for query in ("first_queued", "first_waiting", "first_held", "first_running"):
            found = self._db.value(query, run_id=run_id, source_id=source_id)
            if found is not None:
                return self.job(found)
        return None

    # The turn that is not taken.

    def _rehearse(
        self,
        ledger: Ledger,
        known: Memory,
        limits: Mapping[int, LaneLimits],
        rooms: Sequence[tuple[str, Capacity]],
        case: _Case,
    ) -> tuple[list[Lane], list[Claimed]]:
        """The lanes as they are, and which jobs the next turns of these workers would start."""
        admits = _admitting(case, rooms)
        lanes = ready_lanes(self._db, limits, known.floors, admits)
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
        row, run = self.job(own[0].id), self.run(own[0].run_id)
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
        self,
        now: float,
        case: _Case,
        lanes: Sequence[Lane],
        rooms: Sequence[tuple[str, Capacity]],
        taken: Sequence[Claimed],
        alive: int,
    ) -> Outlook:
        lane = next((each for each in lanes if each.source_id == case.source.id), None)
        gates = [workers_gate(alive), *_code_gate(case, rooms)]
        job = None if case.job is None else self._job_facts(case.job)
        if case.run is not None:
            gates.append(run_gate(self._run_facts(case.run, case.source), job))
        if job is not None:
            gates.append(job_gate(job))
        elif case.run is None or case.run.state not in ENDED_RUN_STATES:
            gates.append(_no_work(case.source))
        kind = case.run.kind if case.run else RunKind.FULL
        place = place_of(case.unit, kind)
        if lane is not None:
            gates += lane_gates(lane, place, self._lane_facts(case.source), now)
            gates.append(_resources(case, lane, rooms))
        is_picked = case.job is not None and case.job.id in {job.id for job in taken}
        if case.may_start:
            gates.append(self._turn_gate(case, gates, is_picked, taken))
        would_start = bool(alive) and is_picked
        stands, deciding = self._stands(case, gates, would_start)
        return Outlook(
            now,
            case.source.key,
            case.run.id if case.run else None,
            case.job.id if case.job else None,
            would_start,
            stands,
            deciding.name if deciding else "",
            deciding.opens_at if deciding else None,
            deciding.command if deciding else "",
            gates,
        )

    def _stands(
        self, case: _Case, gates: Sequence[GateSeen], would_start: bool
    ) -> tuple[Stands, GateSeen | None]:
        by_name = {gate.name: gate for gate in gates}
        if case.job is not None and case.job.state is JobState.RUNNING:
            return "running", by_name["job"]
        ended = (JobState.SUCCEEDED, JobState.SKIPPED, JobState.CANCELLED)
        if case.job is not None and case.job.state in ended:
            return "ended", by_name["job"]
        if case.run is not None and case.run.state in ENDED_RUN_STATES and case.job is None:
            return "ended", by_name["run"]
        stands, gate = how_it_stands(gates, would_start)
        if case.job is None and gate is not None and gate.name in ("work", "workers"):
            return "idle", by_name["work"]
        return stands, gate

    def _turn_gate(
        self, case: _Case, gates: Sequence[GateSeen], is_picked: bool, taken: Sequence[Claimed]
    ) -> GateSeen:
        """Its turn: closed only where no other gate is, but for that nobody works."""
        is_held_back = any(not gate.is_open for gate in gates if gate.name != "workers")
        if is_picked or is_held_back or case.job is None:
            return GateSeen("turn", True)
        job = case.job
        _, _, _, rank = self._db.rows("job_needs", id=job.id)[0]
        where = {"run_id": job.run_id, "stage": job.stage, "rank": rank, "id": job.id}
        before = int(self._db.value("jobs_before", limit=COUNT_LIMIT, **where))
        before += sum((each.run_id, each.stage) == (job.run_id, job.stage) for each in taken)
        if job.deaths >= WARD_DEATHS:
            by = f"{count(job.deaths, 'worker')} died under it: of such jobs, a worker runs one at a time"
        elif before:
            many = f"more than {COUNT_LIMIT:,}" if before >= COUNT_LIMIT else f"{before:,}"
            by = f"{many} of its stage come before it"
        else:
            by = "others of its source, or other sources, come first"
        return GateSeen("turn", False, by)

    def _run_facts(self, run: RunRow, source: SourceRow) -> RunFacts:
        actor, reason, since = run.actor, run.reason, run.finished_at or run.created_at
        if run.state not in (RunState.QUEUED, RunState.RUNNING):
            found = self.events(run_id=run.id, kind=f"run.{run.state}", limit=1)
            if found:
                actor, reason, since = found[-1].actor, found[-1].detail, found[-1].at
        is_refused = source.degraded_at is not None and not policy_of(run.kind).runs_when_degraded
        is_stopped = run.state is RunState.PARTIAL and run.end_reason == "budget"
        goes_on_at = self._budgets_begin_anew_at(run.source, run.id) if is_stopped else None
        return RunFacts(run.id, run.state, run.source, since, actor, reason, is_refused, goes_on_at)

    def _job_facts(self, job: JobRow) -> JobFacts:
        actor, reason, due_at = "", job.error or "", job.due_at
        if job.state is JobState.QUARANTINED and job.kind == "budget":
            due_at = self._budgets_begin_anew_at(job.source, job.run_id)
        if job.state is JobState.WAITING:
            reason = self._put_off_by(job) or reason
        if job.state in (JobState.HELD, JobState.CANCELLED):
            kind = f"job.{job.state}"
            found = self.events(run_id=job.run_id, job_id=job.id, kind=kind, limit=1)
            if found:
                actor, reason = found[-1].actor, found[-1].detail
        return JobFacts(job.id, job.state, job.at, due_at, job.worker or "", actor, reason)

    def _put_off_by(self, job: JobRow) -> str:
        """What its last attempt was put off by without having failed; empty if it has failed."""
        found = self.events(run_id=job.run_id, job_id=job.id, kind="job", limit=LAST_EVENTS)
        last = next((event for event in reversed(found) if event.kind in _WAITS), None)
        if last is None or last.kind != "job.snoozed":
            return ""
        return last.detail.partition(" (again in ")[0]

    def _budgets_begin_anew_at(self, source: str, run_id: int) -> float | None:
        """When what budgets have stopped is sent back; None if a person has to."""
        scopes = ("project", f"source:{source}", f"run:{run_id}")
        times = [row.resets_at for row in self.exhausted_budgets() if row.scope in scopes]
        known = [at for at in times if at is not None]
        return max(known) if known and len(known) == len(times) else None

    def _lane_facts(self, source: SourceRow) -> LaneFacts:
        own = next((row for row in self.breakers() if row.key == f"source:{source.key}"), None)
        return LaneFacts(
            source.key,
            tuple(
                Held(row.scope, row.at, row.actor, row.reason)
                for row in self.holds()
                if row.scope in ("", source.key)
            ),
            source.paused_at,
            source.pause_reason,
            source.cooldown_reason,
            own.since if own else None,
            own.reason if own else "",
        )


def _at_its_host(outlook: Outlook, hours: Mapping[str, Windows]) -> Outlook:
    """Where a job waits for the hours of its host: that gate as well, for no retry opens it."""
    names = [gate.name for gate in outlook.gates]
    if not hours or "job" not in names:
        return outlook
    place = names.index("job")
    job = outlook.gates[place]
    found = [gate for gate in hours_gates(hours, outlook.now) if job.by.endswith(f": {gate.by}")]
    if not found:
        return outlook
    host, gates = found[0], [*outlook.gates[: place + 1], *found, *outlook.gates[place + 1 :]]
    outlook = msgspec.structs.replace(outlook, gates=gates)
    late_s = (outlook.opens_at or 0.0) - (host.opens_at or 0.0)
    if (outlook.stands, outlook.gate) != ("time", "job") or late_s > A_LITTLE_S:
        return outlook
    return msgspec.structs.replace(outlook, gate="host", command=host.command)


def _code_gate(case: _Case, rooms: Sequence[tuple[str, Capacity]]) -> list[GateSeen]:
    """Whether a worker that is alive has loaded what the job needs; only told where none has."""
    if case.job is None or not case.may_start:
        return []
    known = [capacity.loaded for _, capacity in rooms]
    if any(code is None or code.knows(case.source.id, case.job.stage) for code in known):
        return []
    has_source = any(code and case.source.id in code.sources for code in known)
    what = f"step {case.job.stage!r} of {case.source.key}" if has_source else case.source.key
    by = f"no worker that is alive has loaded {what}"
    return [GateSeen("code", False, by, command="restart penstock up")]


def _free(load: _Load, whole: Capacity, loaded: Loaded | None) -> Capacity:
    slots = load.slots or whole.slots
    return Capacity(
        max(0, slots - load.running),
        whole.cpu - load.cpu,
        whole.memory_mb - load.memory_mb,
        load.admits,
        loaded,
    )


def _admitting(case: _Case, rooms: Sequence[tuple[str, Capacity]]) -> Admits:
    """As what kind of worker the lanes are to be looked at: as one that would be given the job."""
    kinds = [capacity.admits for _, capacity in rooms]
    is_suspect = case.job is not None and case.job.deaths >= WARD_DEATHS
    wanted: tuple[Admits, ...] = ("suspect", "all") if is_suspect else ("all", "sound")
    return next((kind for kind in wanted if kind in kinds), "all")


def _no_work(source: SourceRow) -> GateSeen:
    command = f"penstock run {source.key}"
    if source.degraded_at is not None:
        command += " --kind probe"
    return GateSeen("work", False, "nothing is queued", None, source.next_run_at, command)


def _resources(case: _Case, lane: Lane, rooms: Sequence[tuple[str, Capacity]]) -> GateSeen:
    """Whether some worker has room for it."""
    head = _head(case, lane)
    is_suspect = case.job is not None and case.job.deaths >= WARD_DEATHS
    refusing = "sound" if is_suspect else "suspect"
    willing = [capacity for _, capacity in rooms if capacity.admits != refusing]
    if not willing:
        words = "two workers died under it already" if is_suspect else "nobody died under it yet"
        return GateSeen("resources", False, f"no worker takes such jobs now: {words}")
    if any(Room(c.slots, c.cpu, c.memory_mb).fits(head) for c in willing):
        return GateSeen("resources", True)
    if all(capacity.slots <= 0 for capacity in willing):
        return GateSeen("resources", False, "every place of the workers is taken")
    cpu = max(capacity.cpu for capacity in willing)
    memory_mb = max(capacity.memory_mb for capacity in willing)
    needs = f"it needs cpu {head.cpu:g} and {head.memory_mb:g} MB"
    return GateSeen("resources", False, f"{needs}; the workers have {cpu:g} and {memory_mb:g} left")


def _head(case: _Case, lane: Lane) -> Head:
    if case.job is not None and case.may_start:
        where = (case.job.run_id, case.job.stage)
        for head in lane.heads:
            if (head.run_id, head.stage) == where:
                return head
    return next((h for h in lane.heads if h.run_id == PRETENDED), lane.heads[0])
