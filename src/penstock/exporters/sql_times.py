"""When a job of pg_cron starts, and what its command has to look at.

pg_cron goes by UTC. Where the clocks of a time zone change, the job starts at every time by UTC that may be
the one meant, and its command asks Postgres what the clock shows there.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.exporters.fields import HOURS, MONTHS, WEEKDAYS, Fields, cron_text, shifted
from penstock.exporters.moments import is_steady, moments_of, offsets_min, unread
from penstock.exporters.starts import Inexpressible, Start

DAY_MIN = 24 * 60
# How far ahead changes of clocks are looked for that skip a start.
YEARS = 10
LONGEST_SECONDS = 59
# What the clock on the wall shows, in a condition.
WALL = "clock.shows"


@dataclass(frozen=True, slots=True)
class SqlTime:
    """A schedule of pg_cron, and the wall time in SQL under which it starts only once.

    `source_rows` is what selects a row if it is due, as `FROM … WHERE …`.
    """

    schedule: str
    source_rows: str = ""
    wall_time: str = ""

    @property
    def is_in_seconds(self) -> bool:
        return self.schedule.endswith("seconds")


def literal(text: str) -> str:
    if "\0" in text:
        raise Inexpressible("has no text with a zero byte in it")
    return "'" + text.replace("'", "''") + "'"


def times_of(start: Start) -> list[SqlTime]:
    every_s = start.settings.every_s
    if every_s is not None and every_s <= LONGEST_SECONDS and every_s % 1 == 0:
        return [SqlTime(f"{every_s:g} seconds")]
    found, zone = moments_of(start)
    return [time for fields in found for time in _times(fields, zone)]


def skipped_by_clocks(start: Start, year: int) -> bool:
    """Whether some of its times are skipped on a day when the clocks go forward."""
    cron, zone = start.settings.cron, start.settings.timezone
    if cron is None or is_steady(zone) or not any(t.wall_time for t in times_of(start)):
        return False
    return bool(unread(cron, zone, year, YEARS))


def _times(fields: Fields, zone: str) -> list[SqlTime]:
    if is_steady(zone):
        try:
            [ahead] = offsets_min(zone)
            return [SqlTime(cron_text(each)) for each in shifted(fields, -ahead)]
        except Inexpressible:
            pass
    return _looked_up(fields, zone)


def _looked_up(fields: Fields, zone: str) -> list[SqlTime]:
    if fields.seconds != (0,):
        raise Inexpressible("has no seconds")
    moments = {
        (hour * 60 + minute - ahead) % DAY_MIN
        for hour in fields.hours
        for minute in fields.minutes
        for ahead in offsets_min(zone)
    }
    hours = tuple(sorted({each // 60 for each in moments}))
    minutes = tuple(sorted({each % 60 for each in moments}))
    clock = f"(SELECT date_trunc('minute', now()) AT TIME ZONE {literal(zone)}) AS clock (shows)"
    rows = f"FROM {clock} WHERE {_condition(fields, WALL)}"
    once = "" if fields.is_interval else f"to_char({WALL}, 'YYYY-MM-DD HH24:MI')"
    return [SqlTime(cron_text(Fields(minutes, hours)), rows, once)]


def _condition(fields: Fields, wall: str) -> str:
    said = [f"extract(minute FROM {wall}) IN ({_listed(fields.minutes)})"]
    if fields.hours != HOURS:
        said.append(f"extract(hour FROM {wall}) IN ({_listed(fields.hours)})")
    if fields.months != MONTHS:
        said.append(f"extract(month FROM {wall}) IN ({_listed(fields.months)})")
    days = [each for each in (_dates(fields, wall), _weekdays(fields, wall)) if each]
    if days:
        said.append(f"({(' OR ' if fields.either else ' AND ').join(days)})")
    return " AND ".join(said)


def _dates(fields: Fields, wall: str) -> str:
    if not fields.has_days:
        return ""
    last = f"(date_trunc('month', {wall}) + interval '1 month - 1 day')"
    said = []
    if fields.days:
        said.append(f"extract(day FROM {wall}) IN ({_listed(fields.days)})")
    if fields.last_day:
        said.append(f"{wall}::date = {last}::date")
    if fields.last_workday:
        back = f"greatest(extract(isodow FROM {last})::integer - 5, 0)"
        said.append(f"{wall}::date = {last}::date - {back}")
    return f"({' OR '.join(said)})"


def _weekdays(fields: Fields, wall: str) -> str:
    if not fields.has_weekdays:
        return ""
    said = []
    if fields.weekdays and fields.weekdays != WEEKDAYS:
        said.append(f"extract(dow FROM {wall}) IN ({_listed(fields.weekdays)})")
    for nth in fields.nths:
        week = (
            f"(extract(day FROM {wall})::integer + 6) / 7 = {nth.n}"
            if nth.n
            else f"extract(month FROM {wall} + interval '7 days') <> extract(month FROM {wall})"
        )
        said.append(f"(extract(dow FROM {wall}) = {nth.weekday} AND {week})")
    return f"({' OR '.join(said)})"


def _listed(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))
