"""Schedules: what there is, what will start, what became of ticks, and the classes of `cadence: auto`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, page_within, place_of, size_of
from penstock.app.schedule_changes import schedule_changes
from penstock.app.schedule_detail import explain_schedules
from penstock.app.schedule_list import ScheduleList
from penstock.app.upcoming import place, upcoming_ticks
from penstock.app.views.schedules import (
    OUTCOMES,
    CadenceView,
    ScheduleChange,
    SchedulesExplained,
    ScheduleVersionView,
    ScheduleView,
    TickView,
    UpcomingTick,
    cadence_view,
    tick_view,
    version_view,
)
from penstock.app.views.view import Page
from penstock.errors import UsageError, nearest
from penstock.schedules.auto import LADDER, Level

DAY_S = 86_400.0
# Later than any tick.
LATEST = 1e18


class _Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a page of upcoming ticks ends, and the moment that all pages of the list go by."""

    now: float
    at: float
    source: str
    schedule: str

    @property
    def place(self) -> tuple[float, str, str]:
        return self.at, self.source, self.schedule


class Schedules(Noun):
    """The schedules of sources: their policies, what they will start, and the outcomes of their ticks."""

    def list(
        self, source: str | None = None, *, cursor: str | None = None, limit: int = USUAL
    ) -> Page[ScheduleView]:
        """Every schedule, or those of one source: its policy, its next tick and its last one.

        Schedules of penstock.yaml that no scheduler has read yet are in the list; they are not planned.
        """
        rows = self._all(source)
        return page_within(
            rows,
            cursor,
            limit,
            lambda row: row,
            lambda row: (row.source, row.name),
            tuple[str, str],
        )

    def each(self, source: str | None = None) -> Iterator[ScheduleView]:
        """All of them, read once."""
        return iter(self._all(source))

    def upcoming(
        self,
        source: str | None = None,
        *,
        schedule: str | None = None,
        days: float = 7.0,
        cursor: str | None = None,
        limit: int = USUAL,
    ) -> Page[UpcomingTick]:
        """The ticks of the next days in the order of time, as the schedules are in penstock.yaml.

        An overdue tick comes first if it still starts a run. A tick outside its hours is marked as denied.
        """
        after, size = place_of(cursor, _Place), size_of(limit)
        now = self._store.now() if after is None else after.now
        ticks = upcoming_ticks(self._project, now, now + days * DAY_S, self._key(source), schedule)
        left = (each for each in ticks if after is None or place(each) > after.place)
        return page_of(
            [*islice(left, size + 1)],
            size,
            lambda tick: tick,
            lambda tick: _Place(now, *place(tick)),
        )

    def each_upcoming(
        self, source: str | None = None, *, schedule: str | None = None, days: float = 7.0
    ) -> Iterator[UpcomingTick]:
        """All of them, computed as you go: a year of ticks needs no more memory than a day of them."""
        now = self._store.now()
        return upcoming_ticks(self._project, now, now + days * DAY_S, self._key(source), schedule)

    def differences(self) -> Sequence[ScheduleChange]:
        """Compare penstock.yaml with the schedules in force: what the next scheduler to start adds, changes
        or removes.

        A changed schedule gets the next version and is planned from then.
        """
        return schedule_changes(self._project)

    def explain(self, source: str, *, ticks: int = 10, missed: bool = True) -> SchedulesExplained:
        """Why a source did or did not run when it was due: its schedules in force, each with its last ticks.

        `ticks` is how many of each, without those that were missed if `missed` is False. Also what the
        configuration promises of the source, and when that was broken.
        """
        return explain_schedules(self._project, self._key(source) or "", ticks, missed)

    def ticks(
        self,
        source: str,
        schedule: str = "main",
        *,
        missed: bool = True,
        cursor: str | None = None,
        limit: int = USUAL,
    ) -> Page[TickView]:
        """The ticks of a schedule and their outcomes, the last first; kept for `retention.events`."""
        size, before = size_of(limit), place_of(cursor, float)
        self._refuse_unknown(source, schedule)
        rows = self._store.schedules.ticks(
            self._id(source),
            schedule,
            size + 1,
            before=LATEST if before is None else before,
            with_missed=missed,
        )
        return page_of(rows, size, tick_view, lambda row: row.due_at)

    def versions(
        self, source: str, *, cursor: str | None = None, limit: int = USUAL
    ) -> Page[ScheduleVersionView]:
        """Every version of a source's schedules, and how many of its ticks had which outcome."""
        return page_within(
            self._versions(source),
            cursor,
            limit,
            lambda row: row,
            lambda row: (row.name, row.version),
            tuple[str, int],
        )

    def each_version(self, source: str) -> Iterator[ScheduleVersionView]:
        """All of them, in the order of schedule and version."""
        return iter(self._versions(source))

    def cadences(
        self, source: str | None = None, *, cursor: str | None = None, limit: int = USUAL
    ) -> Page[CadenceView]:
        """The class of each source whose cadence is `auto`, or of this one, by source."""
        key = None if source is None else self._auto(source)
        rows = [row for row in self._store.cadences.all() if key in (None, row.source)]
        rows.sort(key=lambda row: row.source)
        return page_within(rows, cursor, limit, cadence_view, lambda row: row.source, str)

    def each_cadence(self, source: str | None = None) -> Iterator[CadenceView]:
        """Iterate over all of them, page by page."""
        return each_item(lambda cursor, limit: self.cadences(source, cursor=cursor, limit=limit))

    def set_cadence(
        self, source: str, level: str, *, actor: str | None = None, reason: str = ""
    ) -> CadenceView:
        """Give a source another class: `low`, `medium` or `high`; or accept the one that is proposed.

        It is judged from there by the runs that come. Refused outside what penstock.yaml allows.
        """
        from penstock.engine.leader.cadences import set_cadence

        key = self._auto(source)
        return cadence_view(set_cadence(self._project, key, _level(level), who(actor), reason))

    def undo_cadence(
        self, source: str, *, actor: str | None = None, reason: str = ""
    ) -> CadenceView:
        """Give a source the class back that it had before."""
        from penstock.engine.leader.cadences import undo_cadence

        key = self._auto(source)
        return cadence_view(undo_cadence(self._project, key, who(actor), reason))

    def _key(self, source: str | None) -> str | None:
        return self._project.source_key(source)

    def _id(self, source: str) -> int:
        key = self._key(source) or ""
        return self._store.sources.ensure([key])[key]

    def _refuse_unknown(self, source: str, schedule: str) -> None:
        key = self._key(source) or ""
        configured = self._project.settings.sources.get(key)
        known = {each.name for each in configured.schedules} if configured else set()
        known |= {row.name for row in self._store.schedules.versions(self._id(source))}
        if schedule not in known:
            raise UsageError(
                f"{key} has no schedule {schedule!r}", nearest(schedule, known), code="no_schedule"
            )

    def _all(self, source: str | None) -> Sequence[ScheduleView]:
        return ScheduleList(self._project).all(self._key(source))

    def _versions(self, source: str) -> Sequence[ScheduleVersionView]:
        source_id, key = self._id(source), self._key(source) or ""
        counts: dict[tuple[str, int, str], int] = {
            (each.schedule, each.version, each.outcome): each.ticks
            for each in self._store.schedules.tick_counts(source_id)
        }
        return [
            version_view(
                key, row, {name: counts.get((row.name, row.version, name), 0) for name in OUTCOMES}
            )
            for row in self._store.schedules.versions(source_id)
        ]

    def _auto(self, source: str) -> str:
        """The key of a source, whose cadence must be `auto`."""
        from penstock.engine.leader.cadences import auto_sources

        key = self._project.source_key(source) or ""
        if key not in auto_sources(self._project):
            raise UsageError(
                f"the cadence of {key} is not auto",
                "schedule: {cadence: auto}",
                code="cadence_not_auto",
            )
        return key


def _level(text: str) -> Level:
    for level in LADDER:
        if level == text:
            return level
    raise UsageError(f"there is no class {text!r}", nearest(text, LADDER), code="no_class")
