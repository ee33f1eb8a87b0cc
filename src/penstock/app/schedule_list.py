"""The list of schedules: those in force, and those of penstock.yaml that no scheduler has read yet."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.app.hours import outside
from penstock.app.schedule_words import words_of
from penstock.app.unfinished import unfinished_runs
from penstock.app.views.schedules import ScheduleView
from penstock.schedules.definition import settings_of
from penstock.schedules.start_hours import calendar_warning
from penstock.settings.schedule_values import SCHEDULED_KINDS

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.settings import ScheduleSettings
    from penstock.store.cadences import CadenceRow
    from penstock.store.schedule_rows import ScheduleRow

# A tick is overdue if no scheduler has looked at it for so long.
OVERDUE_S = 60.0


def configured(project: Project) -> list[tuple[str, ScheduleSettings]]:
    """Every schedule of penstock.yaml, by its source."""
    return [
        (key, settings)
        for key, source in sorted(project.settings.sources.items())
        for settings in source.schedules
    ]


class ScheduleList:
    """Schedules at one moment; what they share is read once, when it is first needed."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._store = project.connection
        self._now = self._store.now()

    def all(self, source: str | None = None) -> list[ScheduleView]:
        """Every schedule, or those of one source, in the order of source and name."""
        rows = [row for row in self._store.schedules.all() if source in (None, row.source)]
        known = {(row.source, row.name) for row in rows}
        found = [self.view(row) for row in rows]
        found += [
            self._unplanned(key, settings)
            for key, settings in configured(self._project)
            if source in (None, key) and (key, settings.name) not in known
        ]
        return sorted(found, key=lambda each: (each.source, each.name))

    def view(self, row: ScheduleRow) -> ScheduleView:
        return ScheduleView(**self.known_of(row))

    def known_of(self, row: ScheduleRow) -> dict[str, Any]:
        """The fields of a schedule that is in force."""
        settings = settings_of(row.definition, row.name)
        is_waiting = bool(row.look_at and row.next_due_at and row.look_at > row.next_due_at)
        return {
            "source": row.source,
            "name": row.name,
            "policy": row.words,
            "kind": row.kind,
            "version": row.version,
            "is_planned": True,
            "next_due_at": row.next_due_at,
            "hours_begin_at": _hours_begin_at(settings, row.next_due_at),
            "overdue_s": self._overdue_s(row),
            "is_waiting": is_waiting,
            "waits_for_run": self._active_runs.get(row.source) if is_waiting else None,
            "last_due_at": row.last_due_at,
            "last_run_id": row.last_run_id,
            "last_state": row.last_state,
            "lateness_s": _lateness_s(row),
            "last_tick_at": row.tick_at,
            "last_outcome": row.tick_outcome,
            "last_reason": row.tick_reason,
            "warning": calendar_warning(settings, self._now),
        }

    def _unplanned(self, key: str, settings: ScheduleSettings) -> ScheduleView:
        return ScheduleView(
            source=key,
            name=settings.name,
            policy=words_of(key, settings, self._cadences.get(key)),
            kind=settings.kind,
            version=None,
            is_planned=False,
            next_due_at=None,
            hours_begin_at=None,
            overdue_s=0.0,
            is_waiting=False,
            waits_for_run=None,
            last_due_at=None,
            last_run_id=None,
            last_state=None,
            lateness_s=None,
            last_tick_at=None,
            last_outcome=None,
            last_reason="",
            warning="",
        )

    def _overdue_s(self, row: ScheduleRow) -> float:
        overdue_s = 0.0 if row.next_due_at is None else self._now - row.next_due_at
        return round(overdue_s, 3) if overdue_s > OVERDUE_S else 0.0

    @cached_property
    def _cadences(self) -> dict[str, CadenceRow]:
        return {row.source: row for row in self._store.cadences.all()}

    @cached_property
    def _active_runs(self) -> dict[str, int]:
        """By source, the run that a tick may have to wait for: the oldest of those that schedules start."""
        runs = unfinished_runs(self._store)
        return {row.source: row.id for row in runs if row.kind in SCHEDULED_KINDS}


def _hours_begin_at(settings: ScheduleSettings, due_at: float | None) -> float | None:
    """Of a tick that is outside its hours: when it could have started something."""
    return None if due_at is None else outside([settings], due_at)


def _lateness_s(row: ScheduleRow) -> float | None:
    if row.last_started_at is None or row.last_due_at is None:
        return None
    return round(row.last_started_at - row.last_due_at, 3)
