"""Calendars: when an exchange is open, holidays and half days included. Needs the extra `markets`."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from importlib import import_module
from typing import Any

from penstock.settings.calendars import LIBRARY


@dataclass(frozen=True, slots=True)
class Sessions:
    """Every session of three years: when each opens and closes, in UTC epoch seconds.

    Trading `begins` and `ends` once in each, and twice where there is a break at noon.
    """

    opens: tuple[float, ...] = ()
    closes: tuple[float, ...] = ()
    begins: tuple[float, ...] = ()
    ends: tuple[float, ...] = ()

    def holds(self, moment: float) -> bool:
        found = bisect_right(self.begins, moment) - 1
        return found >= 0 and moment < self.ends[found]


def sessions(calendar: str, moment: float) -> Sessions:
    """The sessions of the year of this moment and of the years beside it."""
    return _sessions(calendar, datetime.fromtimestamp(moment, UTC).year)


@lru_cache(maxsize=256)
def _sessions(calendar: str, year: int) -> Sessions:
    library = import_module(LIBRARY)
    # Bounds are always passed: the library's own end is a year from the day it is asked.
    start, end = date(year - 1, 1, 1), _known_until(calendar, date(year + 1, 12, 31))
    if start > end:
        return Sessions()
    found = library.get_calendar(calendar, start=start, end=end)
    opens, closes = _seconds(found.opens), _seconds(found.closes)
    begins, ends = _seconds(found.break_ends), _seconds(found.break_starts)
    return Sessions(
        opens, closes, tuple(sorted((*opens, *begins))), tuple(sorted((*ends, *closes)))
    )


def _known_until(calendar: str, end: date) -> date:
    """Some calendars have holidays that are announced year by year, and are known no further."""
    bound = import_module(LIBRARY).calendar_utils.global_calendar_dispatcher
    factory = bound._calendar_factories.get(bound.resolve_alias(calendar))
    last = None if factory is None else factory.bound_max()
    return end if last is None else min(end, last.date())


def _seconds(column: Any) -> tuple[float, ...]:
    return tuple(moment.timestamp() for moment in column.dropna())
