"""Schedules: the starts of the next days as a calendar, how busy each hour is, and how each one stands."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.web.dashboard.charts import Cell, Heat, strength
from penstock.web.dashboard.page import Visit
from penstock.web.dashboard.words import clock, day

if TYPE_CHECKING:
    from penstock.app.views.schedules import UpcomingTick

DAYS = 7
DAY_S, HOUR_S = 86400.0, 3600.0
# A source that starts every second has more ticks than a calendar shows; these are looked at.
TICKS = 4000
LISTED = 10


class Day(NamedTuple):
    """One day of the calendar: its first starts, and how many more there are."""

    name: str
    starts: list[tuple[str, str, bool]]
    more: int


def read(visit: Visit) -> dict[str, Any]:
    project, source = visit.project, visit.text("source")
    now = project.now()
    ticks = [*islice(project.schedules.each_upcoming(source, days=DAYS), TICKS)]
    first = now - now % DAY_S
    return {
        "schedules": [*islice(project.schedules.each(source), 500)],
        "days": calendar(ticks, first),
        "heat": busy_hours(ticks, first),
        "is_cut": len(ticks) == TICKS,
        "changes": project.schedules.differences(),
        "source": source,
    }


def calendar(ticks: list[UpcomingTick], first: float) -> list[Day]:
    days = []
    for number in range(DAYS):
        start = first + number * DAY_S
        of_day = [each for each in ticks if start <= each.at < start + DAY_S]
        shown = [(clock(each.at), each.source, each.is_denied) for each in of_day[:LISTED]]
        days.append(Day(day(start), shown, max(0, len(of_day) - LISTED)))
    return days


def busy_hours(ticks: list[UpcomingTick], first: float) -> Heat:
    """How many runs start in each hour of the next days."""
    counted: dict[tuple[int, int], int] = {}
    for each in ticks:
        if not each.is_denied:
            place = int((each.at - first) // DAY_S), int((each.at - first) % DAY_S // HOUR_S)
            counted[place] = counted.get(place, 0) + 1
    most = max(counted.values(), default=0)
    rows = [day(first + number * DAY_S) for number in range(DAYS)]
    cells = []
    for row in range(DAYS):
        for hour in range(24):
            number = counted.get((row, hour), 0)
            title = f"{rows[row]} {hour:02d}:00: {number} to start"
            cells.append(Cell(hour, row, str(strength(number, most)), title))
    names = [f"{hour:02d}" if hour % 3 == 0 else "" for hour in range(24)]
    return Heat(title="Starts by hour (UTC)", columns=names, rows=rows, cells=cells)
