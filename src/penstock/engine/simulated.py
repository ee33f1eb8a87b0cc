"""What a simulation moves: sources with their lanes and schedules, and runs whose jobs are only counted."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import ceil

from penstock.engine.figures import SourceFigures
from penstock.engine.samples import Past, Sample
from penstock.gates.adaptive import Pulse
from penstock.gates.breaker import Breaker, half_open
from penstock.gates.lane import BreakerFacts, Head, Lane, LaneLimits
from penstock.jobs.job import AGEING_S, Unit
from penstock.jobs.retry import RetryClass
from penstock.jobs.run import Plan, PlannedStage, RunKind, RunOptions, StageCount
from penstock.schedules import Schedule
from penstock.schedules.auto import AutoRule, Standing, effective_schedule, is_auto, rule_of
from penstock.schedules.due import Ticking
from penstock.settings import ScheduleSettings, SourceSettings
from penstock.store.health import HealthRow

FIND = "find"
PAGES = "pages"
PLAN = Plan((PlannedStage(FIND, "run", is_required=True), PlannedStage(PAGES, "page", (FIND,))))
UNITS: Mapping[str, Unit] = {FIND: "run", PAGES: "page"}
# A run that goes well is simulated in about so many steps, however many pages it has.
STEPS = 8
# The oldest are served first: the others need not be looked at.
MOST_HEADS = 4


@dataclass(slots=True)
class Again:
    """A job that has failed before."""

    tries: int = 0
    excuses: int = 0


@dataclass(slots=True)
class Stage:
    """The jobs of one stage of a run: those never tried are a number, the others are known one by one."""

    fresh: int = 0
    again: list[Again] = field(default_factory=list)
    running: int = 0
    waiting: int = 0
    succeeded: int = 0
    quarantined: int = 0
    stopped: int = 0

    @property
    def queued(self) -> int:
        return self.fresh + len(self.again)

    @property
    def open(self) -> int:
        return self.queued + self.running + self.waiting

    def counts(self) -> StageCount:
        return StageCount(
            queued=self.queued,
            running=self.running,
            waiting=self.waiting,
            succeeded=self.succeeded,
            quarantined=self.quarantined + self.stopped,
        )


@dataclass(slots=True, eq=False)
class Run:
    """One run; `stride` is how many jobs in a row each of its places is given at once."""

    number: int
    source: Source
    kind: RunKind
    sample: Sample
    rng: random.Random
    created_at: float
    stages: dict[str, Stage] = field(default_factory=lambda: {FIND: Stage(fresh=1), PAGES: Stage()})
    stride: int = 1
    is_ended: bool = False

    @property
    def is_open(self) -> bool:
        return any(stage.open for stage in self.stages.values())

    @property
    def stopped(self) -> dict[str, int]:
        return {name: stage.stopped for name, stage in self.stages.items() if stage.stopped}

    @property
    def pages(self) -> int:
        return 1 if self.kind is RunKind.PROBE else round(self.sample.pages)

    def longer_stride(self, places: int) -> None:
        most = max(1, ceil(self.sample.pages / (max(1, places) * STEPS)))
        self.stride = min(most, self.stride * 2)


@dataclass(slots=True, eq=False)
class Planned:
    """A schedule of a source and its next tick; one that waits is looked at when a run has ended."""

    settings: ScheduleSettings
    key: str
    next_due: float | None = None
    is_waiting: bool = False
    # What has run of what it waits for.
    ran: set[str] = field(default_factory=set)

    def rule(self, level: str | None) -> Schedule:
        return Ticking(effective_schedule(self.settings, self.key, level))


@dataclass(slots=True, eq=False)
class Source:
    """A source as the simulation has it."""

    number: int
    settings: SourceSettings
    limits: LaneLimits
    retry: RetryClass
    past: Past
    figures: SourceFigures
    schedules: list[Planned]
    good_at: float
    breaker: Breaker = field(default_factory=Breaker)
    health: HealthRow = field(default_factory=HealthRow)
    standing: Standing | None = None
    is_paused: bool = False
    next_place_at: float = 0.0
    # Nothing of it starts before: its places are taken by what has started already.
    full_until: float = 0.0
    wakes_at: float = float("inf")
    running: int = 0
    pulse: Pulse | None = None
    runs: dict[int, Run] = field(default_factory=dict)
    set_aside: dict[int, Run] = field(default_factory=dict)

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

    def lane(self, now: float) -> Lane:
        """What the gates are asked about: the same facts that a claim reads from the store."""
        breaker = self.breaker
        facts = None
        if self.limits.breaker is not None and breaker.state != "closed":
            facts = BreakerFacts(breaker.state, breaker.opens_at, breaker.ramp)
        return Lane(
            self.number,
            tuple(islice(self._heads(), MOST_HEADS)),
            self.limits,
            is_paused=self.is_paused,
            running=self.running,
            next_place_at=self.next_place_at,
            breaker=facts,
            level=None if self.pulse is None else self.pulse.level,
        )

    def _heads(self) -> Iterator[Head]:
        """What is queued, the oldest run first."""
        later_s = self.settings.priority * AGEING_S
        for run in self.runs.values():
            for name, stage in run.stages.items():
                if stage.fresh or stage.again:
                    rank = run.created_at + later_s
                    yield Head(run.number, name, UNITS[name], stage.queued, rank, kind=run.kind)

    def is_tried(self, now: float) -> None:
        """Something of it starts: a breaker whose time has come is half-open from now on."""
        self.breaker = half_open(self.breaker, now)
