"""A picture of the queues, read at one moment: the claim is asked what it would start of it.

It answers what the claim asks of a database, so that the code that claims decides, and takes what was picked
out of its own counts alone. Nothing is locked and nothing is written.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from penstock.gates.capacity import WARD_DEATHS
from penstock.gates.fair_shares import Stretch
from penstock.jobs.job import Unit
from penstock.jobs.run import RunKind, RunState
from penstock.store.database import ALL

Stage = tuple[int, str]
# Id, deaths, rank.
QueuedJob = tuple[int, int, float]


class QueuedStage(msgspec.Struct, array_like=True, gc=False):
    """What is queued of one stage of one run. `first` is the first of it: rank, id, deaths."""

    source_id: int
    run_id: int
    stage: str
    unit: Unit
    depth: int
    cpu: float
    memory_mb: float
    kind: RunKind
    run_state: RunState
    for_drains: bool
    first: tuple[float, int, int] | None

    @property
    def where(self) -> Stage:
        return (self.run_id, self.stage)

    @property
    def is_active(self) -> bool:
        """Whether its run lets it start."""
        return self.run_state is RunState.RUNNING or self.run_state is RunState.QUEUED

    @property
    def order(self) -> tuple[float, int]:
        """By what comes first; what is counted and not found comes last."""
        return (float("inf"), 0) if self.first is None else self.first[:2]

    def add(self, other: QueuedStage) -> None:
        """More of the same stage."""
        self.depth += other.depth
        if other.order < self.order:
            self.first = other.first


@dataclass
class Picture:
    """The queues of all sources. `facts` are those of each lane, as the claim reads them.

    `jobs` are the first ones of each stage in which some have killed workers: which of them a worker takes
    depends on each. Of the others it is enough to know how many there are.
    """

    is_shared: bool
    facts: Mapping[int, Sequence[Any]]
    stages: dict[Stage, QueuedStage]
    running: Counter[tuple[int, str, str]]
    jobs: dict[Stage, list[QueuedJob]]
    wards: Callable[[str], int]
    most: int
    # Of each source of which something starts: the stage, and the first job of it.
    started: dict[int, tuple[Stage, QueuedJob]] = field(default_factory=dict)
    _stage_of: dict[int, Stage] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: count(-1, -1))

    def __post_init__(self) -> None:
        self._has_suspects = bool(self.jobs)

    # What the claim asks.

    def monotonic(self) -> float:
        return 0.0

    def value(self, name: str, **values: Any) -> Any:
        """How many jobs that have killed workers run in a worker; it matters where one is queued."""
        return self.wards(values["worker"]) if self._has_suspects else 0

    def ready_lanes(
        self,
        floors: Sequence[tuple[int, str, float, int]],
        sources: Sequence[int] | None,
        for_drains: bool,
        stretch: Stretch = ALL,
    ) -> tuple[list[Any], list[Any], int]:
        """All of it: it lies in memory."""
        wanted = None if sources is None else set(sources)
        heads = [
            self._head(each, each.depth, each.order[0])
            for each in self._active(for_drains)
            if wanted is None or each.source_id in wanted
        ]
        return heads, self._counts(), stretch.until

    def json(self, name: str, **values: Any) -> Any:
        if name == "running_counts":
            return self._counts()
        if name == "suspect_heads":
            return self._suspect_heads(values["for_drains"]) if self._has_suspects else []
        grants = msgspec.json.decode(values["grants"])
        return [
            self._first((run_id, stage), number, name == "pick_suspects", values["ward_is_free"])
            for run_id, stage, number, *_ in grants
        ]

    # What becomes of it.

    def start(self, picked: Iterable[int]) -> set[int]:
        """Take these jobs out of their queues: the next worker finds the rest. Answers with their sources."""
        taken: dict[Stage, set[int]] = defaultdict(set)
        for job_id in picked:
            taken[self._stage_of[job_id]].add(job_id)
        for where, ids in taken.items():
            stage = self.stages[where]
            first = next(job for job in self.jobs[where] if job[0] in ids)
            self.started.setdefault(stage.source_id, (where, first))
            stage.depth -= len(ids)
            self.running[stage.source_id, stage.unit, stage.kind] += len(ids)
            self.jobs[where] = [job for job in self.jobs[where] if job[0] not in ids]
        return {self.stages[where].source_id for where in taken}

    def _active(self, for_drains: bool) -> list[QueuedStage]:
        return [
            each
            for each in self.stages.values()
            if each.is_active and each.depth > 0 and each.for_drains == for_drains
        ]

    def _head(self, stage: QueuedStage, depth: int, rank: float) -> list[Any]:
        return [
            *(stage.source_id, stage.run_id, stage.stage, stage.unit, depth, rank),
            *(stage.cpu, stage.memory_mb, stage.kind),
            *self.facts[stage.source_id],
        ]

    def _suspect_heads(self, for_drains: bool) -> list[Any]:
        heads = []
        for stage in self._active(for_drains):
            suspects = [job for job in self.jobs.get(stage.where, ()) if job[1] >= WARD_DEATHS]
            if suspects:
                heads.append(self._head(stage, len(suspects), suspects[0][2]))
        return heads

    def _counts(self) -> list[tuple[int, str, str, int]]:
        return [(*what, number) for what, number in self.running.items()]

    def _first(
        self, where: Stage, number: int, suspects_only: bool, ward_is_free: bool
    ) -> list[QueuedJob]:
        if where not in self.jobs:
            self.jobs[where] = self._stand_ins(self.stages[where])
        found = [
            job
            for job in self.jobs[where]
            if (ward_is_free if job[1] >= WARD_DEATHS else not suspects_only)
        ][:number]
        self._stage_of |= dict.fromkeys((job[0] for job in found), where)
        return found

    def _stand_ins(self, stage: QueuedStage) -> list[QueuedJob]:
        """As many jobs as it has, or as could start: only the first is known, and the rest are alike."""
        rank, job_id, deaths = stage.first or (0.0, 0, 0)
        rest = range(min(stage.depth, self.most) - 1)
        return [
            (job_id or next(self._ids), deaths, rank),
            *((next(self._ids), 0, rank) for _ in rest),
        ]
