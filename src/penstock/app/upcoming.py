"""Upcoming ticks: what will start and when, as the schedules are in penstock.yaml, from where they stand."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.app.schedule_list import configured
from penstock.app.views.schedules import UpcomingTick
from penstock.schedules.auto import effective_schedule
from penstock.schedules.definition import definition_of
from penstock.schedules.due import Ticking, what_is_due
from penstock.schedules.near import near
from penstock.schedules.start_hours import slot_opens_at

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.schedules import Schedule
    from penstock.settings import ScheduleSettings
    from penstock.store.schedule_rows import ScheduleRow


def upcoming_ticks(
    project: Project,
    now: float,
    end: float,
    source: str | None = None,
    schedule: str | None = None,
) -> Iterator[UpcomingTick]:
    """Every tick from now to then, in the order of time; none of them is kept in memory."""
    store = project.connection
    standing = {(row.source, row.name): row for row in store.schedules.all()}
    classes = {row.source: row.level for row in store.cadences.all()}
    streams = []
    for key, settings in configured(project):
        if source not in (None, key) or schedule not in (None, settings.name):
            continue
        row = standing.get((key, settings.name))
        rule = effective_schedule(settings, key, classes.get(key))
        rule = Ticking(near(rule, announced(project, settings, row)))
        streams.append(_ticks(key, settings, row, rule, now, end))
    return heapq.merge(*streams, key=place)


def place(tick: UpcomingTick) -> tuple[float, str, str]:
    """What upcoming ticks are in order by."""
    return tick.at, tick.source, tick.schedule


def announced(project: Project, settings: ScheduleSettings, row: ScheduleRow | None) -> list[float]:
    """The moments that this schedule goes by, if it goes by any."""
    if settings.near is None or row is None:
        return []
    return project.connection.announcements.of(row.source_id)


def _ticks(
    key: str,
    settings: ScheduleSettings,
    row: ScheduleRow | None,
    rule: Schedule,
    now: float,
    end: float,
) -> Iterator[UpcomingTick]:
    def tick(at: float) -> UpcomingTick:
        is_denied = slot_opens_at(settings, at) is not None
        kind = settings.run_kind
        return UpcomingTick(
            at=at, source=key, schedule=settings.name, kind=kind, is_denied=is_denied
        )

    if settings.is_external:
        return
    is_standing = row is not None and row.definition == definition_of(settings)
    due = row.next_due_at if row is not None and is_standing else rule.next_due(now)
    while due is not None and due < now:
        # What is overdue starts at once, if it does at all.
        overdue = what_is_due(rule, settings.missed, due, now)
        if overdue.fires is not None:
            yield tick(now)
        due = overdue.next_due_at
    while due is not None and due < end:
        yield tick(due)
        due = rule.next_due(due)
