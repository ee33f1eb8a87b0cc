"""The scheduler: starts a run when a source's schedule says so, once for each tick."""

from __future__ import annotations

from penstock.clock import Clock
from penstock.jobs.run import RunKind
from penstock.project import Project
from penstock.schedules import Schedule, schedule_from
from penstock.store.store import Store, Tick

ACTOR = "scheduler"


class Scheduler:
    """Fires what is due. What it knows lives in the store: a restart neither repeats nor forgets a tick."""

    def __init__(self, project: Project, store: Store, clock: Clock) -> None:
        self._project = project
        self._store = store
        self._clock = clock
        self._schedules: dict[str, Schedule] = {
            key: schedule_from(source.schedule) for key, source in project.settings.sources.items()
        }
        for key, schedule in self._schedules.items():
            next_run_at = schedule.next_due(clock.now())
            store.plan_tick(project.source_ids[key], schedule.words(), next_run_at)

    def tick(self) -> float | None:
        """Start everything that is due now; answers when something is due next.

        Ticks that were missed while nothing ran are made up for by one run, not by many.
        """
        now = self._clock.now()
        upcoming = []
        for _, key, next_run_at in self._store.scheduled():
            schedule = self._schedules.get(key)
            if schedule is None:
                continue
            if next_run_at <= now:
                following = schedule.next_due(now)
                self._fire(key, next_run_at, Tick(schedule.words(), following))
                upcoming.append(following)
            else:
                upcoming.append(next_run_at)
        return min((time for time in upcoming if time is not None), default=None)

    def _fire(self, key: str, due_at: float, tick: Tick) -> None:
        source = self._project.source(key)
        source_id = self._project.source_ids[key]
        active = self._store.active_run_of(source_id)
        if active is not None:
            self._store.skip_tick(source_id, tick, f"run {active} has not ended yet")
            return
        graph = self._project.graph(source)
        self._store.start_run(
            source_id,
            RunKind.FULL,
            graph.plan(source.priority),
            graph.version,
            key=f"tick:{due_at:.3f}",
            actor=ACTOR,
            reason=tick.schedule,
            tick=tick,
        )
