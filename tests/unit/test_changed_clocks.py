"""Every time zone, every change of its clocks from 2020 to 2037, six patterns, against an oracle of its own.

The oracle knows nothing of cron: it walks through the minutes around a change, reads the wall clock, and
says that a wall time is due when the clock first shows it or has jumped past it. It remembers the latest
that the clock has shown, so a time that comes again is not due again.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest

from penstock.schedules import Cron

DAY = 24 * 60
WEEK = 7 * DAY  # no zone changes its clocks twice within one
AROUND = 30 * 60  # minutes on either side of a change
FIRST, LAST = datetime(2020, 1, 1, tzinfo=UTC), datetime(2038, 1, 1, tzinfo=UTC)

# Wall times, each as (expression, weekdays from Monday = 0, minutes of the day).
FIXED = {
    "30 2 * * *": (range(7), {150}),
    "0 0 * * *": (range(7), {0}),
    "15,45 1 * * *": (range(7), {75, 105}),
    "0 3 * * 0": ((6,), {180}),
    "*/20 0-3 * * *": (range(7), {h * 60 + m for h in range(4) for m in (0, 20, 40)}),
}
INTERVAL = "30 * * * *"


def offset_min(zone: ZoneInfo, minute: int) -> int:
    """What the wall clock is ahead of UTC at this minute, rounded down to whole minutes."""
    offset = datetime.fromtimestamp(minute * 60, zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds() // 60)


@cache
def changes(name: str) -> tuple[tuple[int, int, int], ...]:
    """Each change of this zone's clocks: (its first minute, the offset before, the offset after)."""
    zone = ZoneInfo(name)
    found = []
    minute, last = int(FIRST.timestamp() // 60), int(LAST.timestamp() // 60)
    before = offset_min(zone, minute)
    while minute < last:
        minute += WEEK
        after = offset_min(zone, minute)
        if after != before:
            low, high = minute - WEEK, minute
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset_min(zone, middle) == before else (low, middle)
            found.append((high, before, after))
            before = after
    return tuple(found)


@cache
def zones() -> tuple[str, ...]:
    """One zone for each way in which clocks are changed; the others have the same changes."""
    by_changes: dict[tuple[tuple[int, int, int], ...], str] = {}
    for name in sorted(zoneinfo.available_timezones()):
        if changes(name):
            by_changes.setdefault(changes(name), name)
    return tuple(sorted(by_changes.values()))


def walls(change: tuple[int, int, int]) -> Iterator[tuple[int, int]]:
    """(minute, wall clock in minutes) around a change, one by one."""
    at, before, after = change
    for minute in range(at - AROUND, at + AROUND):
        yield minute, minute + (before if minute < at else after)


def first_shown(change: tuple[int, int, int]) -> dict[int, int]:
    """The minute in which the wall clock first shows each of its times, or has jumped past it."""
    found: dict[int, int] = {}
    latest: int | None = None
    for minute, wall in walls(change):
        if latest is not None:
            found.update(dict.fromkeys(range(latest + 1, wall + 1), minute))
        latest = wall if latest is None else max(latest, wall)
    return found


def due_on_the_wall(
    shown: dict[int, int], weekdays: tuple[int, ...] | range, minutes: set[int]
) -> list[int]:
    days = range(min(shown) // DAY, max(shown) // DAY + 1)
    slots = [day * DAY + minute for day in days for minute in minutes]
    return sorted({shown[slot] for slot in slots if slot in shown and weekday(slot) in weekdays})


def weekday(wall: int) -> int:
    # The epoch was a Thursday.
    return (wall // DAY + 3) % 7


def fired(cron: Cron, change: tuple[int, int, int]) -> list[int]:
    at, _, _ = change
    found = []
    moment, end = (at - AROUND) * 60.0, (at + AROUND) * 60.0
    while (due := cron.next_due(moment)) is not None and due < end:
        assert due > moment
        found.append(int(due // 60))
        moment = due
    return found


def test_there_are_many_ways_to_change_a_clock() -> None:
    assert len(zones()) > 40
    assert sum(len(changes(name)) for name in zones()) > 1000


@pytest.mark.parametrize("part", range(8))
def test_wall_time_is_due_once_on_every_day_whatever_the_clocks_do(part: int) -> None:
    for name in zones()[part::8]:
        crons = {text: Cron(text, name) for text in FIXED}
        for change in changes(name):
            shown = first_shown(change)
            for text, (weekdays, minutes) in FIXED.items():
                expected = due_on_the_wall(shown, tuple(weekdays), minutes)
                assert fired(crons[text], change) == expected, (name, text, change)


@pytest.mark.parametrize("part", range(4))
def test_interval_goes_by_real_time_whatever_the_clocks_do(part: int) -> None:
    for name in zones()[part::4]:
        cron = Cron(INTERVAL, name)
        for change in changes(name):
            expected = [minute for minute, wall in walls(change) if wall % 60 == 30]
            found, (_, before, after) = fired(cron, change), change
            if (after - before) % 60 == 0:
                assert found == expected, (name, change)
            else:
                # Half an hour back (Lord Howe): the half hour that is shown again may be left out.
                assert set(found) <= set(expected), (name, change)
                assert len(expected) - len(found) <= 1, (name, change)


def test_daily_time_is_due_on_every_date_of_a_year_in_every_zone() -> None:
    """By the dates that it is due on: none is missing, and none comes twice."""
    for name in zones():
        cron, zone = Cron("30 2 * * *", name), ZoneInfo(name)
        moment = datetime(2026, 1, 1, 12, tzinfo=zone).timestamp()
        dates = []
        for _ in range(365):
            due = cron.next_due(moment)
            assert due is not None
            dates.append(datetime.fromtimestamp(due, zone).date())
            moment = due
        assert dates == [date(2026, 1, 2) + timedelta(days=n) for n in range(365)], name
