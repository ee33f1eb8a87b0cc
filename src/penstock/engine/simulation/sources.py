"""What a simulation moves: sources with their lanes and schedules, and runs whose jobs are only counted."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil, inf

from penstock.engine.simulation.figures import SourceFigures
from penstock.engine.simulation.guards import Guard
from penstock.engine.simulation.hosts import SimulatedHost
from penstock.engine.simulation.samples import Past, Sample
from penstock.gates.adaptive import AdaptiveLevel
from penstock.gates.lane import BreakerFacts, Head, Lane, LaneLimits
from penstock.jobs.job import AGEING_S, Unit
from penstock.jobs.retry import RetryClass
from penstock.jobs.run import Plan, PlannedStage, RunKind, RunOptions, StageCount
from penstock.jobs.run_policy import policy_of
from penstock.jobs.signals import AwaitedSignal
from penstock.schedules import Schedule
from penstock.schedules.auto import AutoRule, Standing, effective_schedule, is_auto, rule_of
from penstock.schedules.due import Ticking
from penstock.schedules.near import near
from penstock.schedules.overlap import Active
from penstock.settings import ScheduleSettings, SourceSettings
from penstock.store.health import HealthRow

FIND = "find"
PAGES = "pages"
PLAN = Plan((PlannedStage(FIND, "run", is_required=True), PlannedStage(PAGES, "page", (FIND,))))
UNITS: Mapping[str, Unit] = {FIND: "run", PAGES: "page"}
# A run that goes well is simulated in about so many steps, however many pages it has; in fewer while nobody
# waits for a slot, as long as none of them takes longer than that.
STEPS = 4
STEPS_WITH_ROOM = 2
LONGEST_STEP_S = 60.0
# A run of which no larger share fails opens no breaker.
CALM = 0.05
FEW_SLOTS = 8


@dataclass(slots=True)
class Again:
    """A job that has failed before."""

    tries: int = 0
    excuses: int = 0


@dataclass(slots=True)
class SimulatedStage:
    """The jobs of one stage of a run: those never tried are a number, the others are known one by one."""

    # When they came into the queue: the oldest are served first.
    since: float
    fresh: int = 0
    again: list[Again] = field(default_factory=list)
    running: int = 0
    waiting: int = 0
    succeeded: int = 0
    quarantined: int = 0
    stopped: int = 0
    # Whether its source has it in line; it may be there still when nothing is queued any more.
    is_in_line: bool = False

    @property
    def queued(self) -> int:
        return self.fresh + len(self.again)

    def counts(self) -> StageCount:
        return StageCount(
            queued=self.queued,
            running=self.running,
            waiting=self.waiting,
            succeeded=self.succeeded,
            quarantined=self.quarantined + self.stopped,
        )


@dataclass(slots=True, eq=False)
class SimulatedRun:
    """One run; `stride` is how many jobs in a row each of its places is given at once."""

    number: int
    source: SimulatedSource
    kind: RunKind
    sample: Sample
    rng: random.Random
    created_at: float
    stages: dict[str, SimulatedStage] = field(init=False)
    # What its deadline counts from: when it was queued, or reopened.
    queued_at: float = field(init=False)
    stride: int = 1
    is_ended: bool = False
    # It began before the simulation did.
    is_resumed: bool = False
    # What is still to be done with pages that were fetched, and what of the next one makes no whole job.
    finishing: int = 0
    part: float = 0.0
    # The signal that has started it, if one has.
    signal: str = ""

    def __post_init__(self) -> None:
        self.queued_at = self.created_at
        self.stages = {
            FIND: SimulatedStage(self.created_at, fresh=1),
            PAGES: SimulatedStage(self.created_at),
        }

    def as_active(self) -> Active:
        return Active(self.number, self.kind, -inf if self.is_resumed else self.created_at)

    @property
    def is_open(self) -> bool:
        if self.finishing:
            return True
        for stage in self.stages.values():
            if stage.fresh or stage.running or stage.waiting or stage.again:
                return True
        return False

    @property
    def stopped(self) -> dict[str, int]:
        return {name: stage.stopped for name, stage in self.stages.items() if stage.stopped}

    @property
    def pages(self) -> int:
        return 1 if policy_of(self.kind).is_one_item else round(self.sample.pages)

    def longer_stride(self, places: int, is_crowded: bool, longest_s: float) -> None:
        each = self.sample.pages / max(1, places)
        short = max(1, int(longest_s / max(self.sample.seconds, 0.001)))
        stride = max(1, ceil(each / STEPS))
        if self.sample.failures > CALM:
            # By and by: a breaker may open, and what it would have spared is not to be started.
            stride = min(stride, self.stride * 4)
        if is_crowded:
            # A place that is given for long is kept from the others for as long.
            self.stride = min(stride, short)
        else:
            self.stride = max(stride, min(ceil(each / STEPS_WITH_ROOM), short))


@dataclass(slots=True)
class Finishing:
    """So many jobs of a run that work on what was fetched, and when the first of them came."""

    since: float
    run: SimulatedRun
    count: int = 0


@dataclass(frozen=True, slots=True)
class QueuedSignal:
    """A signal in the queue of a schedule; `raised_by` had started the run that raised it, if that was
    one of the same source."""

    signal: str
    raised_by: str = ""


@dataclass(slots=True, eq=False)
class SimulatedSchedule:
    """A schedule of a source and its next tick; one that waits is looked at when a run has ended."""

    settings: ScheduleSettings
    key: str
    wants: tuple[AwaitedSignal, ...] = ()
    # Around these it is due more often, if it is one of those.
    moments: tuple[float, ...] = ()
    next_due: float | None = None
    is_waiting: bool = False
    # Of what it waits for together: what has completed. And what is to start a run, the oldest first.
    ran: set[str] = field(default_factory=set)
    queue: deque[QueuedSignal] = field(default_factory=deque)
    _rules: dict[str | None, Schedule] = field(default_factory=dict)

    def rule(self, level: str | None) -> Schedule:
        if level not in self._rules:
            rule = effective_schedule(self.settings, self.key, level)
            self._rules[level] = Ticking(near(rule, self.moments))
        return self._rules[level]


@dataclass(slots=True, eq=False)
class SimulatedSource:
    """A source as the simulation has it."""

    number: int
    settings: SourceSettings
    limits: LaneLimits
    retry: RetryClass
    past: Past
    figures: SourceFigures
    schedules: list[SimulatedSchedule]
    good_at: float
    guard: Guard = field(default_factory=Guard)
    # The one that it asks, if that has limits, hours or a breaker of its own.
    host: SimulatedHost | None = None
    # When the breaker of its host opened that its own was told of last.
    told_of: float = 0.0
    health: HealthRow = field(default_factory=HealthRow)
    standing: Standing | None = None
    is_paused: bool = False
    is_held: bool = False
    next_place_at: float = 0.0
    # Nothing of it starts before: its places are taken by what has started already.
    full_until: float = 0.0
    wakes_at: float = float("inf")
    running: int = 0
    # The jobs that it has started, by its weight.
    had: float = 0.0
    pulse: AdaptiveLevel | None = None
    runs: dict[int, SimulatedRun] = field(default_factory=dict)
    set_aside: dict[int, SimulatedRun] = field(default_factory=dict)
    # The promise to be fresh: since when it was last broken, and until when that has been counted.
    stale_since: float = 0.0
    is_stale: bool = False
    # When one last ended that a budget had stopped: it counts for how fresh it is until that goes on.
    stopped_at: float = 0.0
    judged_until: float = 0.0
    # Since when runs of it take too long that have not ended, and the last that did.
    late_since: set[float] = field(default_factory=set)
    last_late: float = 0.0
    # What is to be done with pages that were fetched, the oldest first.
    finishing: deque[Finishing] = field(default_factory=deque)
    # The stages that may have something queued, by when it was.
    _line: list[tuple[float, int, str, SimulatedRun]] = field(default_factory=list)
    _lane: Lane | None = None

    @property
    def key(self) -> str:
        return self.settings.key

    @property
    def options(self) -> RunOptions:
        return RunOptions(
            degrade_after=self.settings.degrade_after, good_probes=self.settings.good_probes
        )

    @property
    def level(self) -> str | None:
        return None if self.standing is None else self.standing.level

    @property
    def auto_rule(self) -> AutoRule | None:
        found = (rule_of(each.settings) for each in self.schedules if is_auto(each.settings))
        return next(found, None)

    def queue(self, run: SimulatedRun, name: str) -> None:
        """Something of this stage is to be done."""
        self.changed()
        stage = run.stages[name]
        if stage.queued and not stage.is_in_line:
            stage.is_in_line = True
            heappush(self._line, (stage.since, run.number, name, run))

    def finish_later(self, run: SimulatedRun, pages: int, now: float) -> int:
        """So many pages of a run were fetched; answers how many jobs are to be done with them."""
        run.part += pages * run.sample.candidates
        count = int(run.part)
        if count:
            run.part -= count
            run.finishing += count
            if not self.finishing or self.finishing[-1].run is not run:
                self.finishing.append(Finishing(now, run))
            self.finishing[-1].count += count
        return count

    @property
    def is_older_fetched(self) -> bool:
        """Whether what is to be done with fetched pages came before what is to be fetched."""
        return self.finishing[0].since < min(since for since, *_ in self._line)

    def changed(self) -> None:
        """Something of what the gates are asked about is not as it was."""
        self._lane = None

    def lane(self) -> Lane:
        """What the gates are asked about: the same facts that a claim reads from the store."""
        if self._lane is None:
            self._lane = self._made_lane()
        return self._lane

    def _made_lane(self) -> Lane:
        breaker = self.guard.breaker
        facts = None
        if self.limits.breaker is not None and breaker.state != "closed":
            facts = BreakerFacts(breaker.state, breaker.opens_at, breaker.ramp)
        return Lane(
            self.number,
            self._heads(),
            self.limits,
            is_paused=self.is_paused,
            is_held=self.is_held,
            running=self.running,
            next_place_at=self.next_place_at,
            breaker=facts,
            level=None if self.pulse is None else self.pulse.level,
        )

    def _heads(self) -> tuple[Head, ...]:
        """What is queued, the oldest first, up to as much as may start at once."""
        later_s = self.settings.priority * AGEING_S
        found, seen, left = [], [], self.limits.concurrency
        while self._line and left > 0:
            entry = since, number, name, run = heappop(self._line)
            depth = run.stages[name].queued
            if not depth:
                run.stages[name].is_in_line = False
                continue
            seen.append(entry)
            slot = policy_of(run.kind).slot
            found.append(Head(number, name, UNITS[name], depth, since + later_s, run_slot=slot))
            left -= depth
        for entry in seen:
            heappush(self._line, entry)
        return tuple(found)
