"""Opening hours: the windows of the week in which a source or host may be touched, or a schedule may start.

Whether a window is open is asked of the local time, so that a day of 23 or 25 hours has the windows that
its clock shows: an hour that does not exist opens nothing, one that comes twice is open twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from math import ceil, floor
from types import MappingProxyType
from zoneinfo import ZoneInfo

from penstock.errors import ConfigError, nearest

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60
_WINDOW = re.compile(
    r"(?:(?P<days>[a-z]{3}(?:[-,][a-z]{3})*)\s+)?(?P<start>\d{1,2}:\d{2})\s?-\s?(?P<end>\d{1,2}:\d{2})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class WeeklyWindow:
    """From one minute of the day to another; what ends before it begins ends on the next day."""

    days: tuple[int, ...]
    start: int
    end: int

    @property
    def wraps(self) -> bool:
        return self.end <= self.start


def parse_window(text: str) -> WeeklyWindow:
    """`22:00-06:00` on every day, `sat-sun 00:00-24:00` or `mon,wed 09:00-17:30` on some."""
    match = _WINDOW.fullmatch(text.strip())
    if match is None:
        raise ConfigError(
            f"{text!r} is not a window: write it as 22:00-06:00 or sat-sun 00:00-24:00"
        )
    start, end = _minute(match["start"], text), _minute(match["end"], text)
    if start in (DAY_MINUTES, end):
        raise ConfigError(f"{text!r} is an empty window: the whole day is 00:00-24:00")
    return WeeklyWindow(_days(match["days"], text), start, end)


def _minute(text: str, window: str) -> int:
    hour, minute = map(int, text.split(":"))
    if minute > 59 or hour * 60 + minute > DAY_MINUTES:
        raise ConfigError(f"{window!r} is not a window: {text} is no time of the day")
    return hour * 60 + minute


def _days(text: str | None, window: str) -> tuple[int, ...]:
    if text is None:
        return tuple(range(7))
    days: set[int] = set()
    for part in text.lower().split(","):
        first, *more = (_day(word, window) for word in part.split("-"))
        if len(more) > 1:
            raise ConfigError(f"{window!r} is not a window: write its days as mon-fri or sat,sun")
        last = more[0] if more else first
        days.update((first + step) % 7 for step in range((last - first) % 7 + 1))
    return tuple(sorted(days))


def _day(word: str, window: str) -> int:
    if word not in DAYS:
        raise ConfigError(f"{window!r} is not a window: {word} is no day, {nearest(word, DAYS)}")
    return DAYS.index(word)


# Every window comes again within a week, and a day in which it can't be is followed by another week.
DAYS_AHEAD = 15


@dataclass(frozen=True, slots=True)
class OpeningHours:
    """The windows of one source or host, and whose clock they are by."""

    windows: tuple[WeeklyWindow, ...]
    timezone: str = "UTC"


# Of no host.
NO_HOURS: Mapping[str, OpeningHours] = MappingProxyType({})


def window_opens_at(windows: OpeningHours, now: float) -> float | None:
    """None while a window is open, else when the next one opens."""
    # Clocks change at whole minutes, and windows are written in them.
    return _opens_at(windows, floor(now / 60.0))


def hosts_outside(hours: Mapping[str, OpeningHours], now: float) -> dict[str, float]:
    """The hosts of these that may not be asked now, and when they may."""
    opening = {host: window_opens_at(windows, now) for host, windows in hours.items()}
    return {host: opens_at for host, opens_at in opening.items() if opens_at is not None}


@lru_cache(maxsize=4096)
def _opens_at(windows: OpeningHours, minute: int) -> float | None:
    zone = _zone(windows.timezone)
    if _is_open(windows, zone, minute):
        return None
    later = (at for at in _candidates(windows, zone, minute) if at > minute)
    found = next((at for at in sorted(later) if _is_open(windows, zone, at)), None)
    return float("inf") if found is None else found * 60.0


def _is_open(windows: OpeningHours, zone: ZoneInfo, minute: int) -> bool:
    local = datetime.fromtimestamp(minute * 60, zone)
    at, today = local.hour * 60 + local.minute, local.weekday()
    return any(_holds(window, today, at) for window in windows.windows)


def _holds(window: WeeklyWindow, today: int, at: int) -> bool:
    if not window.wraps:
        return today in window.days and window.start <= at < window.end
    if at >= window.start:
        return today in window.days
    return at < window.end and (today - 1) % 7 in window.days


def _candidates(windows: OpeningHours, zone: ZoneInfo, minute: int) -> Iterator[int]:
    """Every minute at which one may open: where it begins, at midnight, and where the clock is changed."""
    day = datetime.fromtimestamp(minute * 60, zone).date()
    before: datetime | None = None
    for _ in range(DAYS_AHEAD):
        midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
        for start in {0, *(window.start for window in windows.windows)}:
            hour, left = divmod(start % DAY_MINUTES, 60)
            for fold in (0, 1):
                yield ceil(midnight.replace(hour=hour, minute=left, fold=fold).timestamp() / 60)
        if before is not None and before.utcoffset() != midnight.utcoffset():
            yield _change(zone, before, midnight)
        before = midnight
        day += timedelta(days=1)


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> int:
    """The first minute with the new offset."""
    low, high = int(before.timestamp() // 60), ceil(after.timestamp() / 60)
    while high - low > 1:
        middle = (low + high) // 2
        offset = datetime.fromtimestamp(middle * 60, zone).utcoffset()
        low, high = (middle, high) if offset == before.utcoffset() else (low, middle)
    return high


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


@lru_cache(maxsize=4096)
def allowed_windows(
    windows: tuple[WeeklyWindow, ...], blackouts: tuple[WeeklyWindow, ...]
) -> tuple[WeeklyWindow, ...]:
    """The windows less the blackouts, as windows: both are by the minutes of a week on the same wall."""
    minutes = [not windows] * (7 * DAY_MINUTES)
    for window in windows:
        _paint(minutes, window, True)
    for window in blackouts:
        _paint(minutes, window, False)
    found: dict[tuple[int, int], list[int]] = {}
    for day in range(7):
        for stretch in _stretches(minutes[day * DAY_MINUTES : (day + 1) * DAY_MINUTES]):
            found.setdefault(stretch, []).append(day)
    return tuple(WeeklyWindow(tuple(days), start, end) for (start, end), days in found.items())


def _paint(minutes: list[bool], window: WeeklyWindow, value: bool) -> None:
    length = window.end - window.start + (DAY_MINUTES if window.wraps else 0)
    for day in window.days:
        first = day * DAY_MINUTES + window.start
        for minute in range(first, first + length):
            minutes[minute % len(minutes)] = value


def _stretches(day: list[bool]) -> list[tuple[int, int]]:
    edges = [at for at in range(DAY_MINUTES) if day[at] != (at > 0 and day[at - 1])]
    if len(edges) % 2:
        edges.append(DAY_MINUTES)
    return list(zip(edges[::2], edges[1::2], strict=True))
