"""Calendars: when an exchange is open, holidays and half days included. Needs the extra `markets`."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from importlib import import_module
from math import inf
from typing import Any

from penstock.settings.calendars import LIBRARY

# Years whose sessions are worked out together: that takes a tenth of a second, however few they are.
YEARS = 4
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Sessions:
    """Every session of some years: when each opens and closes, in UTC epoch seconds.

    Trading `begins` and `ends` once in each, and twice where there is a break at noon. Nothing is known
    of what comes after `known_until`, neither that the exchange is open nor that it is shut.
    """

    opens: tuple[float, ...] = ()
    closes: tuple[float, ...] = ()
    begins: tuple[float, ...] = ()
    ends: tuple[float, ...] = ()
    known_until: float = inf

    def holds(self, moment: float) -> bool:
        found = bisect_right(self.begins, moment) - 1
        return found >= 0 and moment < self.ends[found]


def sessions(calendar: str, moment: float) -> Sessions:
    """The sessions of the year of this moment and of the years beside it."""
    year = datetime.fromtimestamp(moment, UTC).year
    return _sessions(calendar, year - year % YEARS)


def known_until(calendar: str) -> float:
    """Up to when the installed library knows this exchange; infinite for one that goes by rules alone."""
    last = _last_known(calendar)
    return inf if last is None else _end_of(last)


@lru_cache(maxsize=256)
def _sessions(calendar: str, year: int) -> Sessions:
    library = import_module(LIBRARY)
    # Bounds are always passed: the library's own end is a year from the day it is asked.
    last = _last_known(calendar)
    start, end = date(year - 1, 1, 1), date(year + YEARS, 12, 31)
    end = end if last is None else min(end, last)
    until = inf if last is None else _end_of(last)
    if start > end:
        return Sessions(known_until=until)
    found = library.get_calendar(calendar, start=start, end=end)
    opens, closes = _seconds(found.opens), _seconds(found.closes)
    begins, ends = _seconds(found.break_ends), _seconds(found.break_starts)
    return Sessions(
        opens, closes, tuple(sorted((*opens, *begins))), tuple(sorted((*ends, *closes))), until
    )


def _last_known(calendar: str) -> date | None:
    """Some calendars have holidays that are announced year by year, and are known no further."""
    bound = import_module(LIBRARY).calendar_utils.global_calendar_dispatcher
    factory = bound._calendar_factories.get(bound.resolve_alias(calendar))
    last = None if factory is None else factory.bound_max()
    known: date | None = None if last is None else last.date()
    return known


def _end_of(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + DAY_S


def _seconds(column: Any) -> tuple[float, ...]:
    return tuple(moment.timestamp() for moment in column.dropna())
