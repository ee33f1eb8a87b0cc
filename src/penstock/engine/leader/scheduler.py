"""The scheduler: starts a run when a schedule of a source says so, once for each tick.

What it knows lives in the store: a restart neither repeats nor forgets a tick, and any number of
schedulers may act at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from penstock.errors import UsageError
from penstock.jobs.run_policy import kind_to_run
from penstock.pipeline.version import version_of
from penstock.project import Project, run_options
from penstock.schedules import Schedule
from penstock.schedules.auto import effective_schedule, is_auto
from penstock.schedules.definition import definition_of, policy_words
from penstock.schedules.due import GRACE_S, Ticking, is_behind, is_late, what_is_due
from penstock.schedules.near import near
from penstock.schedules.overlap import strength
from penstock.schedules.start_hours import NEVER, calendar_warning, slot_opens_at
from penstock.settings import ScheduleSettings, SourceSettings
from penstock.store.announcements import Sooner
from penstock.store.cadences import CadenceRow
from penstock.store.schedule_rows import DueRow, Passing, Planned, Start
from penstock.store.store import Store

# How often a tick that waits for a run to end is looked at.
AGAIN_S = 2.0
MINUTE_S = 60.0


class Scheduler:
    """Fires what is due."""

    def __init__(self, project: Project, store: Store) -> None:
        self._project = project
        self._store = store
        self._known = {
            (key, settings.name, definition_of(settings)): (source, settings)
            for key, source in project.settings.sources.items()
            for settings in source.schedules
        }
        self._has_near = any(settings.near is not None for _, settings in self._known.values())

    def plan(self) -> int:
        """Make this project's schedules the ones there are; answers how many of them have changed.

        One that has not changed keeps its next tick.
        """
        now = self._store.now()
        sources = self._project.settings.sources
        ids = self._store.sources.ensure(list(sources))
        return self._store.schedules.plan(
            (
                Planned(
                    ids[key],
                    settings.name,
                    definition_of(settings),
                    self._words(ids[key], key, settings),
                    settings.kind,
                    self._first_due(ids[key], key, settings, now),
                )
                for key, source in sources.items()
                for settings in source.schedules
            )
        )

    def rule(self, source_id: int, key: str, settings: ScheduleSettings) -> Schedule:
        """What the ticks of a schedule are counted by."""
        cadence = self._cadence_of(source_id, settings)
        rule = effective_schedule(settings, key, cadence.level if cadence else None)
        if settings.near is not None:
            rule = near(rule, self._store.announcements.of(source_id))
        return Ticking(rule)

    def _first_due(
        self, source_id: int, key: str, settings: ScheduleSettings, now: float
    ) -> float | None:
        if settings.is_external:
            return None
        return self.rule(source_id, key, settings).next_due(now)

    def _words(self, source_id: int, key: str, settings: ScheduleSettings) -> str:
        cadence = self._cadence_of(source_id, settings)
        if cadence is None:
            return policy_words(settings, key)
        return policy_words(settings, key, cadence.standing, cadence.proposed)

    def _cadence_of(self, source_id: int, settings: ScheduleSettings) -> CadenceRow | None:
        """Asked each time, for another process may have moved it; only of those that can be moved."""
        found = self._store.cadences.all(source_id) if is_auto(settings) else []
        return found[0] if found else None

    def tick(self, may_go_on: Callable[[], bool] = lambda: True) -> float | None:
        """Decide on everything that is due now; answers when something is to be looked at next.

        Stops between two schedules when it may no longer act.
        """
        now = self._store.now()
        if self._has_near and may_go_on():
            self._hear(now)
        next_at = self._store.schedules.next_look_at()
        if next_at is None or next_at > now:
            return next_at
        look = _Look(self, self._project, self._store, self._known, now)
        while may_go_on() and (due := self._store.schedules.due(now)):
            if not look.at(due, may_go_on):
                break
        return self._store.schedules.next_look_at()

    def is_behind(self) -> bool:
        """Whether ticks that are due wait for their turn."""
        return self._store.schedules.has_overdue_ticks()

    def _hear(self, now: float) -> None:
        """Have schedules due earlier for what was announced since; none is ever due later for it."""
        heard = self._store.announcements.open()
        if not heard:
            return
        sooner = []
        for source_id in sorted({each.source_id for each in heard}):
            for row in self._store.schedules.all(source_id):
                known = self._known.get((row.source, row.name, row.definition))
                if known is None or known[1].near is None or known[1].is_external:
                    continue
                due_at = self.rule(source_id, row.source, known[1]).next_due(now)
                if due_at is not None:
                    sooner.append(Sooner(source_id, row.name, row.version, due_at))
        self._store.announcements.bring_forward(heard, sooner)


class _Look:
    """One look at all that is due at one moment."""

    def __init__(
        self,
        scheduler: Scheduler,
        project: Project,
        store: Store,
        known: Mapping[tuple[str, str, str], tuple[SourceSettings, ScheduleSettings]],
        now: float,
    ) -> None:
        self._scheduler = scheduler
        self._project = project
        self._store = store
        self._known = known
        self._now = now
        self._caught_up: int | None = None

    def at(self, due: list[DueRow], may_go_on: Callable[[], bool]) -> bool:
        """Decide on these; whether any of them is another one now."""
        has_moved = False
        later: dict[float, list[DueRow]] = {}
        for row in self._in_turn(due):
            if not may_go_on():
                break
            known = self._known.get((row.source, row.name, row.definition))
            if known is None:
                continue  # planned by another configuration: whoever has that one decides
            if wait_s := self._wait_s(row, known[1]):
                later.setdefault(self._now + wait_s, []).append(row)
            else:
                has_moved |= self._decide(row, *known)
        for until, rows in later.items():
            self._store.schedules.put_off(rows, until)
        return has_moved

    def _in_turn(self, due: list[DueRow]) -> list[DueRow]:
        """Of the schedules of one source, that of the strongest kind first: the others may join its run."""
        turn = {row.source_id: number for number, row in reversed(list(enumerate(due)))}

        def order(row: DueRow) -> tuple[int, int]:
            known = self._known.get((row.source, row.name, row.definition))
            return turn[row.source_id], -strength(known[1].run_kind) if known else 0

        return sorted(due, key=order)

    def _wait_s(self, row: DueRow, settings: ScheduleSettings) -> float:
        """How long a tick that is made up for has to wait for those of others; 0 if it is its turn."""
        if not self._is_catching_up(row, settings):
            return 0.0
        if self._caught_up is None:
            self._caught_up = self._store.schedules.late_fires(self._now - MINUTE_S, GRACE_S)
        has_room = self._caught_up + 1 <= settings.catch_up_per_min
        is_alone = self._caught_up == 0 and settings.catch_up_per_min < 1
        return 0.0 if has_room or is_alone else MINUTE_S / settings.catch_up_per_min

    def _is_catching_up(self, row: DueRow, settings: ScheduleSettings) -> bool:
        if settings.missed != "all":
            return False
        if is_late(row.due_at, self._now):
            return True
        is_queued = settings.overlap == "queue" and row.is_put_off
        rule = self._scheduler.rule(row.source_id, row.source, settings)
        return not is_queued and is_behind(rule, row.due_at, self._now)

    def _decide(self, row: DueRow, source: SourceSettings, settings: ScheduleSettings) -> bool:
        rule = self._scheduler.rule(row.source_id, row.source, settings)
        is_patient = self._is_catching_up(row, settings)
        if row.is_put_off and not is_patient:
            passing = self._queued(row, rule, settings, source)
        else:
            due = what_is_due(rule, settings.missed, row.due_at, self._now)
            passing = Passing(
                row,
                due.next_due_at,
                due.passed,
                fires=due.fires,
                start=self._start(row, source, settings) if due.fires is not None else None,
                denied=self._denied(source, settings) if due.fires is not None else "",
                overlap=settings.overlap,
                is_missed=is_patient or (due.fires is not None and is_late(due.fires, self._now)),
                patient=is_patient,
                again_s=AGAIN_S,
            )
        done = self._store.schedules.pass_ticks(passing)
        if done is not None and done.outcome == "fired" and is_patient:
            self._caught_up = (self._caught_up or 0) + 1
        return done is not None and done.outcome != "put-off"

    def _queued(
        self, row: DueRow, rule: Schedule, settings: ScheduleSettings, source: SourceSettings
    ) -> Passing:
        """A tick that has waited for the run before it: those that came meanwhile join it."""
        due = what_is_due(rule, "once", row.due_at, self._now)
        ticks = [*due.passed, *([due.fires] if due.fires is not None else [])]
        return Passing(
            row,
            due.next_due_at,
            ticks[1:],
            "joined",
            fires=ticks[0],
            start=self._start(row, source, settings),
            denied=self._denied(source, settings),
            overlap="queue",
            again_s=AGAIN_S,
        )

    def _start(
        self, row: DueRow, source: SourceSettings, settings: ScheduleSettings
    ) -> Start | None:
        if source.unset or self._unloadable(source):
            return None
        if self._project.why_not_started(source, settings.run_kind):
            return None
        graph = self._project.graph(source)
        health = self._store.sources.health(row.source_id)
        kind = kind_to_run(settings.run_kind, is_degraded=health.degraded_at is not None)
        plan, version = graph.plan(source.priority, kind), version_of(graph, source)
        return Start(kind, plan, version, run_options(source))

    def _unloadable(self, source: SourceSettings) -> str:
        try:
            self._project.graph(source)
        except UsageError as error:
            return error.message
        return ""

    def _denied(self, source: SourceSettings, settings: ScheduleSettings) -> str:
        if source.unset:
            return f"the environment variable {source.unset[0].name} is not set"
        if why := self._unloadable(source):
            return f"its pipeline can't be loaded: {why}"
        if why := self._project.why_not_started(source, settings.run_kind):
            return why
        opens_at = slot_opens_at(settings, self._now)
        if opens_at is None:
            return ""
        if opens_at == NEVER:
            return calendar_warning(settings, self._now) or "outside its hours, and there are none"
        slot = datetime.fromtimestamp(opens_at, UTC)
        return f"outside its hours; the next slot is {slot:%Y-%m-%d %H:%M} UTC"
