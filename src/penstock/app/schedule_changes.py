"""Schedule changes: what penstock.yaml says otherwise than the schedules that are in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.app.schedule_list import configured
from penstock.app.schedule_words import words_of
from penstock.app.views.schedules import KeyChange, ScheduleChange
from penstock.schedules.definition import changes, definition_of

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.settings import ScheduleSettings
    from penstock.store.cadences import CadenceRow
    from penstock.store.schedule_rows import ScheduleRow


def schedule_changes(project: Project) -> list[ScheduleChange]:
    """Schedules that are added, changed or removed, in the order of source and name."""
    store = project.connection
    running = {(row.source, row.name): row for row in store.schedules.all()}
    cadences = {row.source: row for row in store.cadences.all()}
    found = []
    for key, settings in configured(project):
        row = running.pop((key, settings.name), None)
        if row is None or row.definition != definition_of(settings):
            found.append(_put_in(key, settings, row, cadences.get(key)))
    found += [_taken_out(row) for row in running.values()]
    return sorted(found, key=lambda each: (each.source, each.name))


def _put_in(
    key: str, settings: ScheduleSettings, row: ScheduleRow | None, cadence: CadenceRow | None
) -> ScheduleChange:
    return ScheduleChange(
        source=key,
        name=settings.name,
        change="added" if row is None else "changed",
        before=None if row is None else row.words,
        after=words_of(key, settings, cadence),
        keys=_keys("" if row is None else row.definition, definition_of(settings)),
    )


def _taken_out(row: ScheduleRow) -> ScheduleChange:
    return ScheduleChange(
        source=row.source,
        name=row.name,
        change="removed",
        before=row.words,
        after=None,
        keys=_keys(row.definition, ""),
    )


def _keys(before: str, after: str) -> list[KeyChange]:
    return [
        KeyChange(key=key, before=was, after=becomes)
        for key, was, becomes in changes(before, after)
    ]
