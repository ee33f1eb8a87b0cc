"""The scheduler: starts a run when a source's schedule says so, once for each tick."""

from __future__ import annotations

from collections.abc import Callable

from penstock.jobs.run import RunKind
from penstock.pipeline.version import version_of
from penstock.project import Project, run_options
from penstock.schedules import Schedule, schedule_from
from penstock.store.store import Store, Tick


class Scheduler:
    """Fires what is due. What it knows lives in the store: a restart neither repeats nor forgets a tick."""

    def __init__(self, project: Project, store: Store) -> None:
        self._project = project
        self._store = store
        self._schedules: dict[str, Schedule] = {
            key: schedule_from(source.schedule) for key, source in project.settings.sources.items()
        }

    def plan(self) -> None:
        """Note when each source is due by this project's schedules; those that are noted already stay."""
        now = self._store.now()
        ids = self._store.ensure_sources(list(self._schedules))
        for key, schedule in self._schedules.items():
            self._store.plan_tick(ids[key], schedule.words(), schedule.next_due(now))

    def tick(self, may_go_on: Callable[[], bool] = lambda: True) -> float | None:
        """Start everything that is due now; answers when something is due next.

        Ticks that were missed while nothing ran are made up for by one run, not by many. Stops
        between two of them when it may no longer act.
        """
        now = self._store.now()
        upcoming: list[float | None] = []
        for source_id, key, due_at in self._store.scheduled():
            schedule = self._schedules.get(key)
            if schedule is None:
                continue
            if due_at > now:
                upcoming.append(due_at)
            elif may_go_on():
                tick = Tick(due_at, schedule.words(), schedule.next_due(now))
                self._fire(source_id, key, tick)
                upcoming.append(tick.next_run_at)
        return min((time for time in upcoming if time is not None), default=None)

    def _fire(self, source_id: int, key: str, tick: Tick) -> None:
        active = self._store.active_run_of(source_id)
        if active is not None:
            self._store.skip_tick(source_id, tick, f"run {active} has not ended yet")
            return
        source = self._project.source(key)
        graph = self._project.graph(source)
        kind = RunKind(source.schedule.run_kind)
        if self._store.health(source_id).degraded_at is not None:
            kind = RunKind.PROBE
        plan, version = graph.plan(source.priority, kind), version_of(graph, source)
        self._store.fire_tick(source_id, tick, kind, plan, version, run_options(source))
