"""Calendar watch: warns before the calendar of an exchange ends. Nothing that goes by it starts after that.

Done by the host that leads, once an hour. Each end is told once, as a signal.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from penstock.project import Project
from penstock.schedules.calendars import known_until
from penstock.schedules.start_hours import calendar_of, calendar_warns_at
from penstock.store.store import Store

ENDING = "calendar.ending"
EVERY_S = 3600.0
ACTOR = "scheduler"


class CalendarWatch:
    """Looks how far the calendars that schedules go by are known."""

    def __init__(self, project: Project, store: Store) -> None:
        self._project = project
        self._store = store
        self._look_at = float("-inf")
        self._users: dict[str, list[str]] = {}
        for key, source in project.settings.sources.items():
            for settings in source.schedules:
                if (calendar := calendar_of(settings)) is not None:
                    self._users.setdefault(calendar, []).append(f"{key} {settings.name}")

    def look(self) -> None:
        now = self._project.clock.monotonic()
        if not self._users or now < self._look_at:
            return
        self._look_at = now + EVERY_S
        for calendar, users in self._users.items():
            until = known_until(calendar)
            if calendar_warns_at(until) <= self._store.now():
                self._warn(calendar, until, users)

    def _warn(self, calendar: str, until: float, users: list[str]) -> None:
        last = (datetime.fromtimestamp(until, UTC) - timedelta(days=1)).date().isoformat()
        data = {"calendar": calendar, "last_day": last, "schedules": users}
        self._store.signals.raise_(ENDING, data, actor=ACTOR, key=f"{calendar} {last}")
