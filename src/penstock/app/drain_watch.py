"""The watch over a drain: whether its part of a run is done, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec

from penstock.app.views.drains import DrainView, counts_of, shard_words
from penstock.app.views.runs import cause_view
from penstock.counting import count
from penstock.engine.foreground import PATIENCE_S, outside_hours
from penstock.jobs.run import (
    ENDED_RUN_STATES,
    Plan,
    PlannedStage,
    RunState,
    StageCount,
    closed_stages,
    stage_verdict,
)

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.gates.capacity import DrainScope
    from penstock.store.rows import RunRow
    from penstock.store.store import Store

PROGRESS_S = 1.0
FIRST_ERRORS = 5
Until = Literal["closed", "idle"]


@dataclass(frozen=True, slots=True)
class StagesSeen:
    """The stages of a run at one moment: which are closed, and what is in each."""

    run_state: RunState
    closed: Mapping[str, bool]
    counts: Mapping[str, StageCount]

    def is_blocked(self, stage: PlannedStage) -> bool:
        return not all(self.closed[name] for name in stage.after)


def stages_seen(store: Store, row: RunRow, plan: Plan) -> StagesSeen:
    """How a run's stages stand; of one that has ended, all are closed."""
    counts = {
        each.stage: msgspec.convert(each, StageCount, from_attributes=True)
        for each in store.runs.stages(row.id)
    }
    if row.state in ENDED_RUN_STATES:
        return StagesSeen(row.state, {stage.name: True for stage in plan.stages}, counts)
    return StagesSeen(row.state, closed_stages(plan, counts), counts)


@dataclass
class DrainWatch:
    """One drain, from its beginning to its end. It is asked from the supervisor's thread, too."""

    project: Nouns
    row: RunRow
    plan: Plan
    stage: PlannedStage
    scope: DrainScope
    until: Until
    deadline_s: float | None
    on_progress: Callable[[DrainView], None] | None
    follows_itself: bool
    ended: str = ""
    _before: dict[str, int] = field(default_factory=dict)
    _show_at: float = 0.0

    def __post_init__(self) -> None:
        self._began_at = self.project.clock.monotonic()
        self._before = counts_of(self.seen().counts.get(self.stage.name, StageCount()))

    def is_over(self) -> bool:
        """Whether the drain may end, and for what reason."""
        seen = self.seen()
        if self.is_closed(seen):
            self.ended = "closed"
        elif self.deadline_s is not None and self._seconds() >= self.deadline_s:
            self.ended = "deadline"
        elif self.until == "idle" and self._is_idle():
            self.ended = "idle"
        self._show(seen)
        return bool(self.ended)

    def seen(self) -> StagesSeen:
        # The state before the counters: a run ends after its last job, so what looks ended is.
        self.row = self.project.require_run(self.row.id)
        return stages_seen(self.project.connection, self.row, self.plan)

    def is_closed(self, seen: StagesSeen) -> bool:
        """Nothing of it is left, and nothing can come any more.

        A part is done when its own jobs are; of a stage that follows what it finds, each part may get more
        from the others.
        """
        if seen.closed[self.stage.name]:
            return True
        if self.scope.shards == 1 or self.follows_itself or seen.is_blocked(self.stage):
            return False
        return not self.project.connection.runs.left_of(self.scope).is_open

    def view(self, seen: StagesSeen | None = None) -> DrainView:
        seen = seen or self.seen()
        is_closed, found = self.is_closed(seen), seen.counts.get(self.stage.name, StageCount())
        counts = counts_of(found)
        store, run_id = self.project.connection, self.row.id
        causes = []
        if found.quarantined:
            causes = store.runs.failures_by_cause(run_id, FIRST_ERRORS, self.stage.name)
        return DrainView(
            run=run_id,
            source=self.row.source,
            step=self.stage.name,
            shard=shard_words(self.scope.shard, self.scope.shards),
            ended=self.ended,
            is_closed=is_closed,
            state=stage_verdict(self.stage, found) if is_closed else "open",
            run_state=seen.run_state,
            counts=counts,
            done={name: number - self._before.get(name, 0) for name, number in counts.items()},
            errors=tuple(cause_view(each) for each in causes),
            waits_for="" if is_closed else self._waits_for(seen, found),
            seconds=round(self._seconds(), 3),
        )

    def stop(self) -> None:
        """Somebody has stopped it."""
        self.ended = "stopped"

    def begin(self) -> None:
        """Its first job is there: its time is counted from here."""
        self._began_at = self.project.clock.monotonic()

    def _show(self, seen: StagesSeen) -> None:
        now = self.project.clock.monotonic()
        if self.on_progress is not None and now >= self._show_at:
            self._show_at = now + PROGRESS_S
            self.on_progress(self.view(seen))

    def _is_idle(self) -> bool:
        """Nothing of it runs, could start, or is due soon."""
        store = self.project.connection
        left = store.runs.left_of(self.scope)
        if left.is_running or (left.due_at is not None and left.due_at <= store.now() + PATIENCE_S):
            return False
        outside = outside_hours(self.project, PATIENCE_S)
        startable = store.jobs.startable_stages(PATIENCE_S, outside, self.row.id)
        return not (left.is_queued and (self.row.source_id, self.stage.name) in startable)

    def _waits_for(self, seen: StagesSeen, found: StageCount) -> str:
        store = self.project.connection
        if seen.run_state is RunState.PAUSED:
            return f"run {self.row.id} is paused"
        before = [name for name in self.stage.after if not seen.closed[name]]
        if before:
            return f"{', '.join(before)} before it is not done"
        left = store.runs.left_of(self.scope)
        if left.is_queued and not left.is_running:
            [outlook] = self.project.outlook([self.row.source])
            if outlook.stops:
                return f"{self.row.source}: {outlook.stops[0].by or outlook.stops[0].name}"
        if left.is_queued or left.is_running or left.due_at is None:
            return f"{count(found.open, 'job')} left"
        due_s = max(0.0, left.due_at - store.now())
        return f"{count(found.waiting, 'job')} left, the next one is due in {due_s:.0f} s"

    def _seconds(self) -> float:
        return self.project.clock.monotonic() - self._began_at


@dataclass
class RunWatch:
    """The watch over a drain of a whole run: over each of its stages, in order."""

    project: Nouns
    stages: list[DrainWatch]
    deadline_s: float | None
    on_stage: Callable[[DrainView], None]
    on_progress: Callable[[], None]
    ended: str = ""
    _views: dict[str, DrainView] = field(default_factory=dict)
    _begun: set[str] = field(default_factory=set)
    _show_at: float = 0.0

    def __post_init__(self) -> None:
        self._began_at = self.project.clock.monotonic()

    def is_over(self) -> bool:
        """Whether all stages are closed, or its time is over."""
        seen = self.stages[0].seen()
        for watch in self.stages:
            self._look(watch, seen)
        now = self.project.clock.monotonic()
        if len(self._views) == len(self.stages):
            self.ended = "closed"
        elif self.deadline_s is not None and now - self._began_at >= self.deadline_s:
            self.ended = "deadline"
        if now >= self._show_at:
            self._show_at = now + PROGRESS_S
            self.on_progress()
        return bool(self.ended)

    def stop(self) -> None:
        self.ended = "stopped"

    def views(self) -> list[DrainView]:
        """How far each stage is, in order; of one that is closed, what it was then."""
        for watch in self.stages:
            watch.ended = watch.ended or self.ended
        return [self._views.get(watch.stage.name) or watch.view() for watch in self.stages]

    def _look(self, watch: DrainWatch, seen: StagesSeen) -> None:
        name = watch.stage.name
        if name in self._views:
            return
        if name not in self._begun and seen.counts.get(name, StageCount()).total:
            self._begun.add(name)
            watch.begin()
        if watch.is_closed(seen):
            watch.ended = "closed"
            self._views[name] = watch.view(seen)
            self.on_stage(self._views[name])
