"""Windows: the hours in which a source or host may be touched, by the clock on its wall.

Whether a window is open is asked of the local time, so that a day of 23 or 25 hours has the windows that
its clock shows: an hour that does not exist opens nothing, one that comes twice is open twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from math import ceil, floor
from types import MappingProxyType
from zoneinfo import ZoneInfo

from penstock.settings.windows import DAY_MINUTES, Window

# Every window comes again within a week, and a day in which it can't be is followed by another week.
DAYS_AHEAD = 15


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one source or host, and whose clock they are by."""

    windows: tuple[Window, ...]
    timezone: str = "UTC"


# Of no host.
NO_HOURS: Mapping[str, Windows] = MappingProxyType({})


def window_opens_at(windows: Windows, now: float) -> float | None:
    """None while a window is open, else when the next one opens."""
    # Clocks change at whole minutes, and windows are written in them.
    return _opens_at(windows, floor(now / 60.0))


def hosts_outside(hours: Mapping[str, Windows], now: float) -> dict[str, float]:
    """The hosts of these that may not be asked now, and when they may."""
    opening = {host: window_opens_at(windows, now) for host, windows in hours.items()}
    return {host: opens_at for host, opens_at in opening.items() if opens_at is not None}


@lru_cache(maxsize=4096)
def _opens_at(windows: Windows, minute: int) -> float | None:
    zone = _zone(windows.timezone)
    if _is_open(windows, zone, minute):
        return None
    later = (at for at in _candidates(windows, zone, minute) if at > minute)
    found = next((at for at in sorted(later) if _is_open(windows, zone, at)), None)
    return float("inf") if found is None else found * 60.0


def _is_open(windows: Windows, zone: ZoneInfo, minute: int) -> bool:
    local = datetime.fromtimestamp(minute * 60, zone)
    at, today = local.hour * 60 + local.minute, local.weekday()
    return any(_holds(window, today, at) for window in windows.windows)


def _holds(window: Window, today: int, at: int) -> bool:
    if not window.wraps:
        return today in window.days and window.start <= at < window.end
    if at >= window.start:
        return today in window.days
    return at < window.end and (today - 1) % 7 in window.days


def _candidates(windows: Windows, zone: ZoneInfo, minute: int) -> Iterator[int]:
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
