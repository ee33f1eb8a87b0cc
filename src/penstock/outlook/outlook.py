"""The outlook of a source, a run or a job: every gate before its next start, and which of them decides.

Both answers are made here: that of `explain`, which takes the next turn and undoes it, and that of a list,
which only reads. They differ in how they learn what the next turn starts, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial

import msgspec

from penstock.counting import count
from penstock.errors import Remedy
from penstock.gates.capacity import WARD_DEATHS, Admits, Capacity
from penstock.gates.fair_shares import Room
from penstock.gates.lane import Head, Lane
from penstock.gates.loaded import Loaded
from penstock.jobs.job import JobState, Unit
from penstock.jobs.run import ENDED_RUN_STATES, RunKind, RunState
from penstock.jobs.run_policy import slot_of
from penstock.outlook.seen_gates import (
    CELL,
    ONBOARDING,
    GateSeen,
    JobStanding,
    LaneFacts,
    RunStanding,
    Stands,
    drain_gate,
    hours_gates,
    how_it_stands,
    job_gate,
    lane_gates,
    run_gate,
    workers_gate,
)
from penstock.settings.opening_hours import OpeningHours

# The run of a job that is not there, to see what would hold it back.
PRETENDED = -1
# A job that waits for a host's hours is due a little after they begin.
A_LITTLE_S = 60.0

# The gates that stop a source, whether or not it has work, in the order in which they are told.
STOPS = (
    *(CELL, *ONBOARDING, "held", "paused", "degraded"),
    *("window", "breaker", "cooldown"),
)

# Workers that are alive by name, each with what is free in it.
Rooms = Sequence[tuple[str, Capacity]]


class Outlook(msgspec.Struct, frozen=True, gc=False):
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
    gates: list[GateSeen]
    # What keeps its source from being asked for anything, whatever its next job is; only in lists.
    stops: list[GateSeen] = []

    @property
    def command(self) -> str:
        """What opens the gate that decides, as a shell has it."""
        deciding = next((each for each in self.gates if each.name == self.gate), None)
        return "" if deciding is None else deciding.command


class SourceFacts(msgspec.Struct, frozen=True, gc=False):
    id: int
    lane: LaneFacts
    degraded_at: float | None = None
    degraded_reason: str = ""
    next_run_at: float | None = None

    @property
    def key(self) -> str:
        return self.lane.source


class Case(msgspec.Struct, frozen=True, gc=False):
    """What is asked about: a source, and of it the run and the job that would be next, if there are any."""

    source: SourceFacts
    run: RunStanding | None = None
    job: JobStanding | None = None
    kind: RunKind = RunKind.FULL
    stage: str = ""
    unit: Unit = "page"
    deaths: int = 0

    @property
    def may_start(self) -> bool:
        if self.job is None or self.run is None or self.job.state is not JobState.QUEUED:
            return False
        return self.run.state is RunState.RUNNING or self.run.state is RunState.QUEUED


@dataclass(frozen=True)
class NextTurn:
    """The next turn of the workers: how many of them are alive, and what is free in each.

    `is_picked` says whether it starts the job; `behind` who comes before it, asked where nothing else is in
    the way. What depends on the workers alone is found out once for all sources.
    """

    now: float
    alive: int
    rooms: Rooms
    is_picked: bool = False
    behind: Callable[[], str] = lambda: OTHERS_FIRST

    @cached_property
    def workers(self) -> GateSeen:
        return workers_gate(self.alive)

    @cached_property
    def for_workers(self) -> Rooms:
        """What is free in workers that are no drain's."""
        return [each for each in self.rooms if each[1].scope is None]

    def is_drained(self, run_id: int, stage: str) -> bool:
        """Whether a drain of this stage of this run is at work."""
        scopes = [capacity.scope for _, capacity in self.rooms]
        return any(scope is not None and scope.covers(run_id, stage) for scope in scopes)

    @cached_property
    def codes(self) -> list[Loaded] | None:
        """What each worker has loaded; None if one of them has loaded whatever there is."""
        found = [capacity.loaded for _, capacity in self.rooms]
        known = [loaded for loaded in found if loaded is not None]
        return known if len(known) == len(found) else None

    @cached_property
    def room_for(self) -> Callable[[float, float, bool], GateSeen]:
        """Whether some worker has room for a job with these needs, that killed workers before or not."""
        return cache(partial(_resources_gate, self.for_workers))


OTHERS_FIRST = "other jobs of this source, or other sources, come first"


def outlook_of(case: Case, lane: Lane | None, turn: NextTurn) -> Outlook:
    """All gates in the order in which they are asked, and what they come to."""
    for_drains = case.run is not None and case.run.for_drains
    gates = [_performers_gate(case, turn), *_code_gate(case, turn.codes)]
    if case.run is not None:
        gates.append(run_gate(case.run, case.job))
    if case.job is not None:
        gates.append(job_gate(case.job))
    elif case.run is None or case.run.state not in ENDED_RUN_STATES:
        gates.append(_work_gate(case.source))
    if lane is not None:
        gates += lane_gates(lane, slot_of(case.unit, case.kind), case.source.lane, turn.now)
        head = _head(case, lane)
        if not for_drains:
            gates.append(turn.room_for(head.cpu, head.memory_mb, case.deaths >= WARD_DEATHS))
    closed = [gate for gate in gates if not gate.is_open]
    if case.may_start:
        gates.append(its_turn := _turn_gate(case, closed, turn))
        if not its_turn.is_open:
            closed.append(its_turn)
    would_start = (for_drains or bool(turn.alive)) and turn.is_picked
    stands, deciding = _stands(case, closed, would_start)
    return Outlook(
        turn.now,
        case.source.key,
        case.run.id if case.run else None,
        case.job.id if case.job else None,
        would_start,
        stands,
        deciding.name if deciding else "",
        deciding.opens_at if deciding else None,
        gates,
    )


def _performers_gate(case: Case, turn: NextTurn) -> GateSeen:
    """Whether somebody is there who may perform it: workers, or a drain of its stage."""
    run = case.run
    if run is None or not run.for_drains:
        return turn.workers
    return drain_gate(run, case.stage, turn.is_drained(run.id, case.stage))


def stops_of(
    source: SourceFacts, lane: Lane, now: float, gates: Sequence[GateSeen] | None = None
) -> list[GateSeen]:
    """What keeps a source from being asked for anything: it may have post-processing to do all the same.

    `gates` are those before a job that asks, if they are known. That it is degraded is no gate of the claim,
    but of every new run that is no probe.
    """
    if gates is None:
        gates = lane_gates(lane, "page", source.lane, now)
    found = [gate for gate in gates if not gate.is_open and gate.name in STOPS]
    if source.degraded_at is not None:
        found.append(_degraded_gate(source))
    return sorted(found, key=_place_of_stop) if found else found


def _place_of_stop(gate: GateSeen) -> int:
    return STOPS.index(gate.name)


def at_its_host(outlook: Outlook, host: str, hours: Mapping[str, OpeningHours]) -> Outlook:
    """Where its job waits for the hours of its host: that gate as well, for no retry opens it."""
    names = [gate.name for gate in outlook.gates]
    found = hours_gates({host: hours[host]}, outlook.now) if host in hours else []
    if not found or "job" not in names:
        return outlook
    place = names.index("job")
    gate, gates = found[0], [*outlook.gates[: place + 1], *found, *outlook.gates[place + 1 :]]
    outlook = msgspec.structs.replace(outlook, gates=gates)
    late_s = (outlook.opens_at or 0.0) - (gate.opens_at or 0.0)
    if (outlook.stands, outlook.gate) != ("time", "job") or late_s > A_LITTLE_S:
        return outlook
    return msgspec.structs.replace(outlook, gate="host")


def admitting(deaths: int, rooms: Rooms) -> Admits:
    """As what kind of worker the lanes are to be looked at: as one that would be given the job."""
    kinds = [capacity.admits for _, capacity in rooms]
    wanted: tuple[Admits, ...] = ("suspect", "all") if deaths >= WARD_DEATHS else ("all", "sound")
    return next((kind for kind in wanted if kind in kinds), "all")


def _stands(
    case: Case, closed: Sequence[GateSeen], would_start: bool
) -> tuple[Stands, GateSeen | None]:
    if case.job is not None and case.job.state is JobState.RUNNING:
        return "running", _named(closed, "job")
    ended = (JobState.SUCCEEDED, JobState.SKIPPED, JobState.CANCELLED)
    if case.job is not None and case.job.state in ended:
        return "ended", _named(closed, "job")
    if case.run is not None and case.run.state in ENDED_RUN_STATES and case.job is None:
        return "ended", _named(closed, "run")
    if case.job is None:
        # Nothing that one could queue would start.
        shut = next((gate for gate in closed if gate.name in ONBOARDING), None)
        if shut is not None:
            return "person", shut
    stands, gate = how_it_stands(closed, would_start)
    if case.job is None and gate is not None and gate.name in ("work", "workers"):
        return "idle", _named(closed, "work")
    return stands, gate


def _named(gates: Sequence[GateSeen], name: str) -> GateSeen:
    return next(gate for gate in gates if gate.name == name)


def _code_gate(case: Case, codes: Sequence[Loaded] | None) -> Sequence[GateSeen]:
    """Whether a worker that is alive has loaded what the job needs; only told where none has."""
    if codes is None or not case.may_start:
        return ()
    if any(code.knows(case.source.id, case.stage) for code in codes):
        return ()
    has_source = any(case.source.id in code.sources for code in codes)
    what = f"step {case.stage!r} of {case.source.key}" if has_source else case.source.key
    by = f"no worker that is alive has loaded {what}"
    return [GateSeen("code", False, by)]


def _work_gate(source: SourceFacts) -> GateSeen:
    verb = "runs.start" if source.degraded_at is None else "runs.probe"
    remedy = Remedy(verb, source.key)
    return GateSeen("work", False, "nothing is queued", None, source.next_run_at, remedy)


def _degraded_gate(source: SourceFacts) -> GateSeen:
    remedy = Remedy("sources.resume", source.key)
    return GateSeen("degraded", False, source.degraded_reason, source.degraded_at, None, remedy)


def _resources_gate(rooms: Rooms, cpu: float, memory_mb: float, is_suspect: bool) -> GateSeen:
    """Whether some worker has room for a job with these needs."""
    head = Head(PRETENDED, "", "page", 1, 0.0, cpu, memory_mb)
    refusing = "sound" if is_suspect else "suspect"
    willing = [capacity for _, capacity in rooms if capacity.admits != refusing]
    if not willing:
        words = (
            "two workers died while running it" if is_suspect else "no worker has died running it"
        )
        return GateSeen("resources", False, f"no worker accepts such jobs now: {words}")
    if any(Room(c.slots, c.cpu, c.memory_mb).fits(head) for c in willing):
        return GateSeen("resources", True)
    if all(capacity.slots <= 0 for capacity in willing):
        return GateSeen("resources", False, "all worker slots are taken")
    most_cpu = max(capacity.cpu for capacity in willing)
    most_mb = max(capacity.memory_mb for capacity in willing)
    left = f"the workers have {most_cpu:g} and {most_mb:g} left"
    return GateSeen("resources", False, f"it needs cpu {cpu:g} and {memory_mb:g} MB; {left}")


def _head(case: Case, lane: Lane) -> Head:
    if case.run is not None and case.may_start:
        where = (case.run.id, case.stage)
        for head in lane.heads:
            if (head.run_id, head.stage) == where:
                return head
    return next((h for h in lane.heads if h.run_id == PRETENDED), lane.heads[0])


_ITS_TURN = GateSeen("turn", True)


def _turn_gate(case: Case, closed: Sequence[GateSeen], turn: NextTurn) -> GateSeen:
    """Its turn: closed only where no other gate is, but for that nobody works."""
    if turn.is_picked or any(gate.name != "workers" for gate in closed):
        return _ITS_TURN
    if case.deaths >= WARD_DEATHS:
        died = f"{count(case.deaths, 'worker')} died while running it"
        by = f"{died}; a worker runs one such job at a time"
        return GateSeen("turn", False, by)
    return GateSeen("turn", False, turn.behind())
