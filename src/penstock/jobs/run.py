"""A run is one walk of a source through its pipeline; how it goes on and ends is computed here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from penstock.counting import count
from penstock.jobs.job import DEFAULT_PRIORITY, Unit
from penstock.jobs.signals import SignalFacts
from penstock.settings import RetryChoice


class RunState(StrEnum):
    DRAFT = "draft"
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunKind(StrEnum):
    FULL = "full"
    INCREMENTAL = "incremental"
    BACKFILL = "backfill"
    REPLAY = "replay"
    PROBE = "probe"
    STREAM = "stream"


class StageBounds(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many jobs a stage of a run may have, and how far from its first ones it may follow."""

    jobs: int | None = None
    depth: int | None = None


class Share(msgspec.Struct, frozen=True):
    """A share of pages: the same ones on every host, by the hash of their keys."""

    percent: float
    salt: str


class RunOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run was asked for beyond its kind; each field belongs to the kinds that its comment names."""

    # backfill: the stretch of time and what it is cut into; `is_missing_only` fills gaps.
    start_at: float | None = None
    end_at: float | None = None
    window_s: float | None = None
    partitions: tuple[str, ...] = ()
    timezone: str = "UTC"
    calendar: Literal["always", "weekdays"] = "always"
    holidays: tuple[str, ...] = ()
    is_missing_only: bool = False
    # backfill: the newest run that has ingested this range before; of how many windows, if not of all.
    reconciles: int | None = None
    reconciled_windows: int | None = None
    # backfill: a draft that is started when its source, which is degraded, has recovered.
    waits_for_recovery: bool = False
    # replay: what it saves is staged, to be looked at, and applied or dropped by a person.
    is_staged: bool = False
    # replay of several runs: everything the source fetched since then.
    since_at: float | None = None
    # replay: only the pages that were quarantined.
    is_quarantined_only: bool = False
    # replay: it brings back what the records were before another run; it has no pages.
    is_undo: bool = False
    # replay: its jobs are items that were rejected, at the stages that rejected them; it is not staged.
    is_redrive: bool = False
    # Any kind: what this run has done already, in these stages, need not be done again.
    continues: int | None = None
    continued_stages: tuple[str, ...] = ()
    # probe: a trial of a source that is being onboarded: more items, and what they save is staged.
    is_trial: bool = False
    # probe: how many requests a trial may send.
    trial_requests: int | None = None
    # full, incremental: how many of them that fail in a row degrade the source, 0 for never.
    degrade_after: int = 3
    # probe: how many that go well in a row end that.
    good_probes: int = 2
    # full, incremental, probe: it was promised to take no longer.
    deadline_s: float | None = None
    # full, incremental: how old the last good run, and what is known of the source's shape, may be.
    freshness_s: float | None = None
    schema_freshness_s: float | None = None
    # Any kind that a schedule starts: the signal that started it.
    signal: SignalFacts | None = None
    # Any kind: over the source's own params, for this run.
    params: dict[str, Any] = {}
    # full, incremental: somebody tries it at a terminal; it is not held against the source if it fails.
    is_tried: bool = False
    # full, incremental: at most so many pages, to try a pipeline.
    pages: int | None = None
    # Any kind but replay: how large its stages may grow.
    bounds: dict[str, StageBounds] = {}
    # Any kind: the release that performs it; empty for the files of the project.
    by_release: str = ""
    # replay, backfill: a draft that is started when the run that it is of has ended.
    follows: bool = False
    # Any kind: the canary that measures what comes of its pages.
    canary: int | None = None
    # full, incremental: pages that it leaves to a run of a canary's release.
    leaves: Share | None = None
    # backfill: pages of the run that it is of which that run has left.
    takes: Share | None = None

    def __hash__(self) -> int:
        return hash(msgspec.json.encode(self))


NO_OPTIONS = RunOptions()


class RunFacts(msgspec.Struct, frozen=True):
    """What a worker must know of a run to perform its jobs."""

    id: int
    kind: RunKind
    options: RunOptions = NO_OPTIONS
    of_run_id: int | None = None
    pipeline_version: str = ""
    created_at: float = 0.0


ACTIVE_RUN_STATES = (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED)
ENDED_RUN_STATES = (
    RunState.COMPLETED,
    RunState.PARTIAL,
    RunState.FAILED,
    RunState.CANCELLED,
)


class PlannedStage(msgspec.Struct, frozen=True):
    """One stage as the run was started with it: what comes before it, and what it needs."""

    name: str
    unit: Unit
    after: tuple[str, ...] = ()
    is_gather: bool = False
    is_required: bool = False
    priority: int = DEFAULT_PRIORITY
    cpu: float = 0.0
    memory_mb: float = 0.0
    # As the pipeline's code declares them, so that they can be shown without importing it.
    is_stream: bool = False
    timeout_s: float | None = None
    retry: RetryChoice | None = None
    pipeline_retry: RetryChoice | None = None
    most_jobs: int | None = None
    most_depth: int | None = None


class Plan(msgspec.Struct, frozen=True):
    """The pipeline's stages, in an order in which each comes after those it depends on."""

    stages: tuple[PlannedStage, ...]

    def stage(self, name: str) -> PlannedStage | None:
        return next((stage for stage in self.stages if stage.name == name), None)


class StageCount(msgspec.Struct, frozen=True):
    """How many jobs of one stage of a run are in each state."""

    queued: int = 0
    running: int = 0
    waiting: int = 0
    held: int = 0
    succeeded: int = 0
    skipped: int = 0
    quarantined: int = 0
    cancelled: int = 0

    @property
    def open(self) -> int:
        return self.queued + self.running + self.waiting + self.held

    @property
    def total(self) -> int:
        return self.open + self.succeeded + self.skipped + self.quarantined + self.cancelled


def bounds_of(plan: Plan, pages: int | None) -> dict[str, StageBounds]:
    """The stages of a run that may not grow without end."""
    found = {}
    for stage in plan.stages:
        asked = pages if stage.unit == "page" and not stage.is_gather else None
        known = [most for most in (stage.most_jobs, asked) if most is not None]
        if known or stage.most_depth is not None:
            found[stage.name] = StageBounds(min(known, default=None), stage.most_depth)
    return found


def cut_words(counts: Mapping[str, StageCount], bounds: Mapping[str, StageBounds]) -> str:
    """Which stages of a run have as many jobs as they may; empty if none has."""
    full = [
        f"{name} reached its limit of {count(most, 'job')}"
        for name, bound in bounds.items()
        if (most := bound.jobs) is not None and name in counts and counts[name].total >= most
    ]
    return f"cut: {', '.join(full)}" if full else ""


def continued_stages(plan: Plan) -> tuple[str, ...]:
    """The stages of which a run that continues another has nothing to do again.

    Not those that gather, nor what comes after them: there is more to gather now.
    """
    found: list[str] = []
    for stage in plan.stages:
        if not stage.is_gather and all(name in found for name in stage.after):
            found.append(stage.name)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Advance:
    """What a run does next: gather stages to start, or the state it ends in; both empty = goes on."""

    start: tuple[str, ...] = ()
    ends_as: RunState | None = None
    reason: str = ""


def advance(
    plan: Plan, counts: Mapping[str, StageCount], stopped: Mapping[str, int] | None = None
) -> Advance:
    """Decide how a run goes on, from the number of its jobs in each state and nothing else.

    `stopped` are those of the quarantined ones that no more is known of than that a budget had no room
    for them. They have not failed; what gathers from their stage waits until they are done.
    """
    stopped = stopped or {}
    failed = _without(counts, stopped)
    closed: dict[str, bool] = {}
    broken: set[str] = set()
    halted: set[str] = set()
    start: list[str] = []
    for stage in plan.stages:
        count = counts.get(stage.name, StageCount())
        upstream_closed = all(closed[name] for name in stage.after)
        upstream_broken = any(name in broken for name in stage.after)
        upstream_halted = any(name in halted for name in stage.after)
        came_to_nothing = _came_to_nothing(failed.get(stage.name, StageCount()))
        if upstream_broken or (stage.is_required and came_to_nothing):
            broken.add(stage.name)
        if upstream_halted or stopped.get(stage.name):
            halted.add(stage.name)
        may_gather = upstream_closed and not upstream_broken and not upstream_halted
        if stage.is_gather and not count.total and may_gather:
            start.append(stage.name)
            closed[stage.name] = False
            continue
        closed[stage.name] = upstream_closed and not count.open
    if start or not all(closed.values()):
        return Advance(start=tuple(start))
    ends_as = _verdict(plan, failed, bool(broken))
    if halted and ends_as is not RunState.FAILED:
        return Advance(ends_as=RunState.PARTIAL, reason="budget")
    return Advance(ends_as=ends_as)


def closed_stages(plan: Plan, counts: Mapping[str, StageCount]) -> dict[str, bool]:
    """Which stages of an active run have nothing left to do and can get nothing more."""
    closed: dict[str, bool] = {}
    for stage in plan.stages:
        is_after_closed = all(closed[name] for name in stage.after)
        closed[stage.name] = is_after_closed and not counts.get(stage.name, StageCount()).open
    return closed


def stage_verdict(
    stage: PlannedStage, count: StageCount
) -> Literal["ok", "partial", "failed", "skipped"]:
    """What a stage that is closed has come to. One that gathers and never began was not let to."""
    if stage.is_gather and not count.total:
        return "skipped"
    if count.cancelled and count.cancelled == count.total:
        return "failed"
    if not count.quarantined:
        return "ok"
    is_all = count.quarantined == count.total
    return "failed" if stage.is_required or is_all else "partial"


def _without(
    counts: Mapping[str, StageCount], stopped: Mapping[str, int]
) -> Mapping[str, StageCount]:
    return {
        name: replace(count, quarantined=count.quarantined - stopped.get(name, 0))
        for name, count in counts.items()
    }


def _came_to_nothing(count: StageCount) -> bool:
    """A required stage has ended and something of it failed, or all of it was cancelled."""
    return not count.open and (
        count.quarantined > 0 or (count.cancelled > 0 and count.cancelled == count.total)
    )


def _verdict(plan: Plan, counts: Mapping[str, StageCount], is_broken: bool) -> RunState:
    bad = [s for s in plan.stages if counts.get(s.name, StageCount()).quarantined]
    if any(stage.is_required for stage in bad):
        return RunState.FAILED
    if is_broken:
        return RunState.CANCELLED
    if not bad:
        return RunState.COMPLETED
    for stage in plan.stages:
        count = counts.get(stage.name, StageCount())
        if stage.unit == "page" and count.quarantined and count.quarantined == count.total:
            return RunState.FAILED
    return RunState.PARTIAL
