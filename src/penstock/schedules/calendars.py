"""Calendars: when an exchange is open, holidays and half days included. Needs the extra `markets`."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

from penstock.errors import ConfigError, nearest


@dataclass(frozen=True, slots=True)
class Sessions:
    """Every session of three years: when each opens and closes, in UTC epoch seconds."""

    opens: tuple[float, ...]
    closes: tuple[float, ...]

    def holds(self, moment: float) -> bool:
        found = bisect_right(self.opens, moment) - 1
        return found >= 0 and moment < self.closes[found]


def sessions(calendar: str, moment: float) -> Sessions:
    """The sessions of the year of this moment and of the years beside it."""
    return _sessions(calendar, datetime.fromtimestamp(moment, UTC).year)


def check_calendar(name: str) -> str:
    """The name, if there is such a calendar and what knows it is installed."""
    known = _library().get_calendar_names(include_aliases=True)
    if name not in known:
        raise ConfigError(f"there is no calendar {name!r}, {nearest(name, known)}")
    return name


@lru_cache(maxsize=256)
def _sessions(calendar: str, year: int) -> Sessions:
    check_calendar(calendar)
    library = _library()
    # Bounds are always passed: the library's own end is a year from the day it is asked.
    start, end = date(year - 1, 1, 1), date(year + 1, 12, 31)
    found = library.get_calendar(calendar, start=start, end=_known_until(calendar, end))
    return Sessions(_seconds(found.opens), _seconds(found.closes))


def _known_until(calendar: str, end: date) -> date:
    """Some calendars have holidays that are announced year by year, and are known no further."""
    bound = _library().calendar_utils.global_calendar_dispatcher
    factory = bound._calendar_factories.get(bound.resolve_alias(calendar))
    last = None if factory is None else factory.bound_max()
    return end if last is None else min(end, last.date())


def _seconds(column: Any) -> tuple[float, ...]:
    return tuple(moment.timestamp() for moment in column)


def _library() -> Any:
    try:
        import exchange_calendars  # type: ignore[import-untyped]
    except ImportError:
        raise ConfigError(
            "schedules by market session need the extra `markets`",
            "pip install 'penstock[markets]'",
        ) from None
    return exchange_calendars
