"""Cron: wall-clock times in a time zone, once each on the days when the clocks change."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim

from penstock.settings import parse_cron, parse_timezone

_ALL_HOURS = frozenset(range(24))
_ANY_DAY = datetime(2024, 1, 1, tzinfo=UTC)
LONGEST_GAP_S = 86400


class Cron:
    """Due at the times of a cron expression of five or six fields (seconds first) or an alias.

    An expression for certain hours names wall-clock times, and each fires once: a time that the
    clocks skip fires at the first moment after the gap, a time that they show twice fires at the
    first. An expression for every hour names an interval and goes by real time through both.
    """

    def __init__(self, expression: str, timezone: str = "UTC") -> None:
        self.expression = parse_cron(expression)
        self.timezone = timezone
        self._zone = parse_timezone(timezone)
        self._is_interval = CronSim(self.expression, _ANY_DAY).hours == _ALL_HOURS

    def next_due(self, after: float) -> float | None:
        return self._next_real(after) if self._is_interval else self._next_wall(after)

    def words(self) -> str:
        rule = CronSim(self.expression, _ANY_DAY)
        said = rule.explain()
        if not rule.day_and:  # either day is meant, and "and" would be read as both
            said = " or on ".join(said.rsplit(" and on ", 1))
        return f"{said[:1].lower()}{said[1:]} ({self.timezone})"

    def _next_real(self, after: float) -> float | None:
        local = datetime.fromtimestamp(after, self._zone)
        moment = next(CronSim(_with_any_hour(self.expression), local), None)
        return None if moment is None else moment.timestamp()

    def _next_wall(self, after: float) -> float | None:
        wall = datetime.fromtimestamp(after, self._zone).replace(tzinfo=None, fold=0)
        for slot in CronSim(self.expression, wall):
            due = _instant(slot, self._zone)
            # Not the first slot when the wall clock was set back and `after` is in the second pass.
            if due > after:
                return due
        return None


def _with_any_hour(expression: str) -> str:
    # The simulator goes by the spelling, and would take `0-23` for certain hours.
    *before, _hour, day, month, weekday = expression.split()
    return " ".join([*before, "*", day, month, weekday])


def _instant(wall: datetime, zone: ZoneInfo) -> float:
    """The first moment at which the wall clock shows this time, or has jumped over it."""
    moment = wall.replace(tzinfo=zone, fold=0)
    if _shown(moment, zone) == wall:
        return moment.timestamp()
    # In a gap: fold 0 counts with the offset from before it, so this lands as far behind the gap's
    # end as the wall time lies behind its beginning. Halve towards the first moment that is after.
    high = int(moment.timestamp())
    low = high - LONGEST_GAP_S
    while low < high:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).replace(tzinfo=None, fold=0) < wall:
            low = middle + 1
        else:
            high = middle
    return float(low)


def _shown(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None, fold=0)
