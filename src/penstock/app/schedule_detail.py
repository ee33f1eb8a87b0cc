"""Schedules of one source, whole: why it did or did not run when it was due."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from penstock.app.hours import schedule_hours
from penstock.app.schedule_list import ScheduleList
from penstock.app.signals import queue_of
from penstock.app.upcoming import announced, upcoming_ticks
from penstock.app.views.schedules import (
    CadenceView,
    PromisesView,
    ScheduleDetail,
    SchedulesExplained,
    WatchedFolder,
    cadence_view,
    tick_count_view,
    tick_view,
)
from penstock.app.views.sources import breach_view
from penstock.schedules.auto import is_auto
from penstock.schedules.definition import settings_of
from penstock.settings.pattern import pattern_of

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.settings import ScheduleSettings
    from penstock.store.schedule_rows import ScheduleRow

# So many starts to come are named, of so long a time.
AHEAD = 5
AHEAD_S = 366 * 86_400.0


def explain_schedules(
    project: Project, key: str, ticks: int, with_missed: bool
) -> SchedulesExplained:
    """All schedules of a source, each with so many of its last ticks."""
    store = project.connection
    source_id = store.sources.ensure([key])[key]
    configured = project.settings.sources.get(key)
    details = _Details(project, ticks, with_missed)
    return SchedulesExplained(
        source=key,
        schedules=[details.of(row) for row in store.schedules.all(source_id)],
        promises=PromisesView(
            freshness_s=configured.freshness_s if configured else None,
            deadline_s=configured.deadline_s if configured else None,
            schema_freshness_s=configured.schema_freshness_s if configured else None,
        ),
        schema_verified_at=store.promises.verification(source_id).verified_at,
        breaches=[breach_view(each) for each in store.promises.breaches(source_id, limit=ticks)],
        is_scheduled=configured is not None and bool(configured.schedules),
    )


class _Details:
    """Schedules whole, at one moment."""

    def __init__(self, project: Project, ticks: int, with_missed: bool) -> None:
        self._project = project
        self._store = project.connection
        self._now = self._store.now()
        self._list = ScheduleList(project)
        self._ticks = ticks
        self._with_missed = with_missed

    def of(self, row: ScheduleRow) -> ScheduleDetail:
        store, settings = self._store, settings_of(row.definition, row.name)
        queue = queue_of(self._project, row.source_id, row.name)
        ticks = store.schedules.ticks(
            row.source_id, row.name, self._ticks, with_missed=self._with_missed
        )
        counts = [
            each for each in store.schedules.tick_counts(row.source_id) if each.schedule == row.name
        ]
        has_hours, opens_at = schedule_hours(settings, self._now)
        return ScheduleDetail(
            **self._list.known_of(row),
            queue=list(queue.signals),
            announced=announced(self._project, settings, row),
            coming=self._coming(row),
            ticks=[tick_view(each) for each in ticks],
            counts=[tick_count_view(each) for each in counts],
            changed_at=row.changed_at,
            cadence=self._cadence(row, settings),
            near_s=None if settings.near is None else settings.near.window_s,
            has_hours=has_hours,
            opens_at=opens_at,
            watched=self._watched(row, settings),
            queued=queue.total,
        )

    def _coming(self, row: ScheduleRow) -> list[float]:
        end = self._now + AHEAD_S
        ticks = upcoming_ticks(self._project, self._now, end, row.source, row.name)
        return list(islice((each.at for each in ticks if not each.is_denied), AHEAD))

    def _cadence(self, row: ScheduleRow, settings: ScheduleSettings) -> CadenceView | None:
        found = self._store.cadences.all(row.source_id) if is_auto(settings) else []
        return cadence_view(found[0]) if found else None

    def _watched(self, row: ScheduleRow, settings: ScheduleSettings) -> WatchedFolder | None:
        from penstock.engine.leader.files import folder_of

        if settings.watch is None:
            return None
        pattern = settings.watch.pattern
        folder = folder_of(self._project, pattern_of(pattern))
        return WatchedFolder(
            pattern=pattern,
            folder=str(folder),
            landed=len(self._store.files.landed(row.source_id, row.name)),
            is_there=folder.is_dir(),
            is_folder=(self._project.settings.root / pattern).is_dir(),
        )
