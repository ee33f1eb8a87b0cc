"""Moments: when a schedule is due, as fields by the clock of a time zone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import cast
from zoneinfo import ZoneInfo

from penstock.exporters.fields import Fields, fields_of, matches, of_interval, shifted
from penstock.exporters.starts import Inexpressible, Start, refuse_what_waits
from penstock.schedules import Cron
from penstock.schedules.cadence import INTERVAL_S, CadenceClass
from penstock.schedules.spread import spread

# What time zones do after 2037 nobody has decided.
FIRST_YEAR, LAST_YEAR = 2020, 2037
STEP = timedelta(days=1)


def moments_of(start: Start) -> tuple[tuple[Fields, ...], str]:
    """The fields and the zone that they are by.

    What has no wall time of its own (an interval, a class) gets one that is its source's, in UTC, to the
    minute. What is due in every hour is said in UTC: there it goes by real time whoever reads it.
    """
    settings = start.settings
    refuse_what_waits(settings)
    if settings.cron is None:
        every_s, first_at = interval_of(start)
        return of_interval(every_s, first_at), "UTC"
    fields = fields_of(settings.cron)
    if fields.is_interval and fields.is_on_every_day and settings.timezone != "UTC":
        ahead = {offset % 60 for offset in offsets_min(settings.timezone)}
        if len(ahead) == 1 and (fields.seconds == (0,) or ahead == {0}):
            return shifted(fields, -ahead.pop()), "UTC"
    return (fields,), settings.timezone


def interval_of(start: Start) -> tuple[float, float]:
    """The interval of what has one, and a moment of it, in seconds since the epoch."""
    settings = start.settings
    if settings.every_s is not None:
        return settings.every_s, spread(start.source, settings.every_s, "export")
    if settings.cadence is not None:
        every_s = INTERVAL_S[cast(CadenceClass, settings.cadence)]  # auto was refused
        return every_s, spread(start.source, every_s, "cadence")
    raise Inexpressible(f"can't say {settings.kind}")


@lru_cache(maxsize=256)
def offsets_min(zone: str) -> frozenset[int]:
    """What the zone's clocks are ahead of UTC, in minutes: all that they were and will be."""
    return frozenset(_offset_min(day, ZoneInfo(zone)) for day in _days(FIRST_YEAR, LAST_YEAR))


def is_steady(zone: str) -> bool:
    return len(offsets_min(zone)) == 1


def unread(expression: str, zone: str, first_year: int, years: int) -> list[float]:
    """Due moments that a reader of wall clocks misses, who takes each time that exists, once.

    Those are the ends of gaps in which a due time was skipped, and what is due in an hour's second pass.
    """
    if is_steady(zone):
        return []
    info, found = ZoneInfo(zone), []
    cron, fields = Cron(expression, zone), fields_of(expression)
    for change in _changes(info, first_year, min(first_year + years, LAST_YEAR)):
        moment, end = change - 1.0, change + 86_400.0
        while (due := cron.next_due(moment)) is not None and due < end:
            wall = datetime.fromtimestamp(due, info)
            if wall.fold or not matches(fields, wall):
                found.append(due)
            moment = due
    return found


def _changes(zone: ZoneInfo, first_year: int, last_year: int) -> Iterator[float]:
    """The first moment of each new offset."""
    before: datetime | None = None
    for day in _days(first_year, last_year):
        if before is not None and _offset_min(before, zone) != _offset_min(day, zone):
            low, high = int(before.timestamp()), int(day.timestamp())
            while high - low > 1:
                middle = (low + high) // 2
                is_old = _offset_min(datetime.fromtimestamp(middle, UTC), zone) == _offset_min(
                    before, zone
                )
                low, high = (middle, high) if is_old else (low, middle)
            yield float(high)
        before = day


def _days(first_year: int, last_year: int) -> Iterator[datetime]:
    day = datetime(first_year, 1, 1, tzinfo=UTC)
    while day.year <= last_year:
        yield day
        day += STEP


def _offset_min(moment: datetime, zone: ZoneInfo) -> int:
    offset = moment.astimezone(zone).utcoffset()
    return int(offset.total_seconds() // 60) if offset is not None else 0
