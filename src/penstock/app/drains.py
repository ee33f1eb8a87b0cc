"""Drains: an orchestrator's tasks perform a prepared run, stage by stage; workers leave it alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from penstock.app.noun import Noun, who
from penstock.app.refusals import refuse_by_release, refuse_opening
from penstock.app.views.drains import DrainStage, counts_of
from penstock.errors import (
    AlreadyRunning,
    PenstockError,
    Refused,
    Remedy,
    UsageError,
    nearest,
)
from penstock.gates.capacity import DrainScope
from penstock.jobs.run import Plan, PlannedStage, RunKind, StageCount

if TYPE_CHECKING:
    from penstock.app.drain_watch import DrainWatch, RunWatch, StagesSeen, Until
    from penstock.app.views.drains import DrainView
    from penstock.pipeline.graph import Graph
    from penstock.store.rows import RunRow


class Drains(Noun):
    """The stages of prepared runs, and performing them."""

    def plan(self, source: str, kind: str | None = None) -> Sequence[DrainStage]:
        """The stages of a source's pipeline in a run of this kind, in order; nothing is opened or written."""
        found = self._project.source(source)
        graph = self._project.graph(found)
        plan = graph.plan(found.priority, RunKind(kind or found.usual_kind))
        return _views(plan, graph, None)

    def stages(self, run: int) -> Sequence[DrainStage]:
        """The stages of a run in order, with their state and counts."""
        from penstock.app.drain_watch import stages_seen

        row, store = self._project.require_run(run), self._store
        plan = store.runs.plan(run)
        return _views(plan, self._graph(row), stages_seen(store, row, plan))

    def look(self, run: int, step: str) -> DrainView:
        """How far a stage of a prepared run is; nothing is performed."""
        watch = self._watch(run, step, (1, 1), "closed", None, None)
        seen = watch.seen()
        watch.ended = "closed" if watch.is_closed(seen) else ""
        return watch.view(seen)

    def perform(
        self,
        run: int,
        step: str,
        *,
        shard: tuple[int, int] = (1, 1),
        until: Until = "closed",
        wait_upstream: bool = False,
        retry_failed: bool = False,
        deadline_s: float | None = None,
        on_progress: Callable[[DrainView], None] | None = None,
        tell: Callable[[str], None] = lambda text: None,
        stopping: threading.Event | None = None,
        grace_s: float | None = None,
        actor: str | None = None,
    ) -> DrainView:
        """Perform the jobs of one stage of a prepared run, with workers of its own, until it is closed.

        `step` is the stage or any step of it; `shard` is (2, 4) for the second of four parts. `until="idle"`
        ends when nothing more can be done now. A stage before it that is not closed is refused, or with
        `wait_upstream` waited for. `retry_failed` queues its quarantined jobs again first. After `deadline_s`
        it stops in good order, as it does on SIGTERM, Ctrl-C, or when `stopping` is set; the next drain goes
        on. What runs then may finish within the project's `worker.grace`; after `stopping`, within `grace_s`
        if that is less. `on_progress` is called about once a second, `tell` with what workers and steps say.
        """
        watch = self._watch(run, step, shard, until, deadline_s, on_progress)
        if retry_failed and watch.row.quarantined:
            refuse_opening(self._project, run)
            self._store.runs.retry_failed(run, who(actor), "drained again", watch.scope)
        seen = watch.seen()
        if watch.is_closed(seen):
            watch.ended = "closed"
            return watch.view(seen)
        if not wait_upstream and seen.is_blocked(watch.stage):
            raise _upstream_open(watch, seen)
        self._drain(watch, watch.scope, tell, stopping or threading.Event(), grace_s)
        return watch.view()

    def perform_run(
        self,
        run: int,
        *,
        retry_failed: bool = False,
        deadline_s: float | None = None,
        on_stage: Callable[[DrainView], None] = lambda view: None,
        on_progress: Callable[[], None] = lambda: None,
        tell: Callable[[str], None] = lambda text: None,
        stopping: threading.Event | None = None,
        actor: str | None = None,
    ) -> Sequence[DrainView]:
        """Perform all stages of a prepared run at once: items go through them as `penstock run` lets them.

        Answers with a view for each stage, in order. `on_stage` is called with that of each one as it is
        closed, `on_progress` about once a second. The rest is as in `perform`.
        """
        from penstock.app.drain_watch import RunWatch

        row = self._project.require_run(run)
        names = [stage.name for stage in self._store.runs.plan(run).stages]
        watches = [self._watch(run, name, (1, 1), "closed", None, None) for name in names]
        watch = RunWatch(self._project, watches, deadline_s, on_stage, on_progress)
        if retry_failed and row.quarantined:
            refuse_opening(self._project, run)
            self._store.runs.retry_failed(run, who(actor), "drained again")
        if not watch.is_over():
            self._drain(watch, DrainScope(run), tell, stopping or threading.Event())
        return watch.views()

    def _watch(
        self,
        run: int,
        step: str,
        shard: tuple[int, int],
        until: Until,
        deadline_s: float | None,
        on_progress: Callable[[DrainView], None] | None,
    ) -> DrainWatch:
        from penstock.app.drain_watch import DrainWatch

        row = self._project.require_run(run)
        refuse_by_release(row)
        if not row.for_drains and not row.is_ended:
            raise Refused(
                f"run {run} is performed by workers; only a prepared run can be drained",
                code="run_not_prepared",
                remedy=Remedy("runs.prepare", row.source),
            )
        plan, graph = self._store.runs.plan(run), self._graph(row)
        stage = _stage_of(plan, graph, step)
        scope = _scope(run, stage, shard)
        code = None if graph is None else graph.stage(stage.name)
        follows = code is not None and code.follow is not None
        about = (self._project, row, plan, stage, scope, until, deadline_s, on_progress)
        return DrainWatch(*about, follows_itself=follows)

    def _graph(self, row: RunRow) -> Graph | None:
        """The pipeline's code as it is now; None if it can't be had, which workers will say better."""
        try:
            return self._project.graph(self._project.source(row.source))
        except PenstockError:
            return None

    def _drain(
        self,
        watch: DrainWatch | RunWatch,
        scope: DrainScope,
        tell: Callable[[str], None],
        stopping: threading.Event,
        grace_s: float | None = None,
    ) -> None:
        from penstock.app.run_performer import in_own_loop
        from penstock.engine.drain import drain

        about = (scope, watch.is_over, tell, stopping, grace_s)
        try:
            is_whole = in_own_loop(lambda: drain(self._project, *about), stopping)
        except AlreadyRunning as error:
            raise _alone(error) from None
        if not is_whole or not watch.ended:
            watch.stop()


def _views(plan: Plan, graph: Graph | None, seen: StagesSeen | None) -> list[DrainStage]:
    phases: dict[str, int] = {}
    found = []
    for stage in plan.stages:
        phases[stage.name] = 1 + max((phases[name] for name in stage.after), default=-1)
        state = "open"
        if seen is not None and seen.closed[stage.name]:
            state = "closed"
        elif stage.after if seen is None else seen.is_blocked(stage):
            state = "blocked"
        found.append(_view(stage, graph, phases[stage.name], state, seen))
    return found


def _view(
    stage: PlannedStage, graph: Graph | None, phase: int, state: str, seen: StagesSeen | None
) -> DrainStage:
    code = None if graph is None else graph.stage(stage.name)
    counts = {} if seen is None else seen.counts
    return DrainStage(
        name=stage.name,
        steps=(stage.name,) if code is None else code.steps,
        after=stage.after,
        unit=stage.unit,
        is_gather=stage.is_gather,
        is_required=stage.is_required,
        phase=phase,
        state=state,
        counts=counts_of(counts.get(stage.name, StageCount())),
    )


def _stage_of(plan: Plan, graph: Graph | None, step: str) -> PlannedStage:
    """The stage of this name, or the one that performs the step of this name."""
    found = plan.stage(step)
    if found is not None:
        return found
    steps: dict[str, PlannedStage] = {}
    for stage in plan.stages:
        code = None if graph is None else graph.stage(stage.name)
        steps |= dict.fromkeys((stage.name,) if code is None else code.steps, stage)
    if step not in steps:
        raise UsageError(f"the run has no step {step!r}", nearest(step, steps), code="no_step")
    return steps[step]


def _scope(run: int, stage: PlannedStage, shard: tuple[int, int]) -> DrainScope:
    part, parts = shard
    if not 1 <= part <= parts:
        raise UsageError(f"there is no part {part} of {parts}", "parts are 1/4 to 4/4")
    if stage.is_gather and parts > 1:
        raise UsageError(
            f"{stage.name} gathers: it is one job and has no parts", code="gather_has_no_parts"
        )
    return DrainScope(run, stage.name, part - 1, parts)


def _upstream_open(watch: DrainWatch, seen: StagesSeen) -> Refused:
    before = [name for name in watch.stage.after if not seen.closed[name]]
    return Refused(
        f"{watch.stage.name} of run {watch.row.id} comes after {', '.join(before)},"
        f" which {'is' if len(before) == 1 else 'are'} not done",
        "drain that first, or wait for it",
        code="upstream_open",
        remedy=Remedy("drain", f"{watch.row.id} {before[0]}"),
    )


def _alone(error: AlreadyRunning) -> AlreadyRunning:
    return AlreadyRunning(
        f"{error.message}; on SQLite a drain has the project to itself",
        "let one task run at a time, with no workers beside it, or use Postgres",
        code="drain_alone",
    )
