"""Windows: a stretch of time, cut into units of work for each partition, and what of it is missing.

Windows of whole days are cut at the midnights of a time zone, so a day in which clocks are changed has
23 or 25 hours; all others are cut evenly. Both are counted from the beginning of the stretch. Units are
numbered window by window, in each of them partition by partition: a number is all that a plan which was
interrupted has to remember.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

from penstock.jobs.run import RunKind, RunOptions
from penstock.jobs.run_policy import policy_of

DAY_S = 86_400.0
# Where stretches meet within this, nothing is missing between them.
SLACK_S = 0.001
SATURDAY = 5

Calendar = Literal["always", "weekdays"]


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time of one partition; `end_at` is the first moment after it."""

    partition: str
    start_at: float
    end_at: float

    @property
    def start(self) -> datetime:
        return datetime.fromtimestamp(self.start_at, UTC)

    @property
    def end(self) -> datetime:
        return datetime.fromtimestamp(self.end_at, UTC)

    def item(self) -> dict[str, str]:
        return {"partition": self.partition, "from": written(self.start), "to": written(self.end)}

    def key(self) -> str:
        return f"{self.partition}|{written(self.start)}|{written(self.end)}"


@dataclass(frozen=True, slots=True)
class Windows:
    """All windows of a stretch of time, for all partitions."""

    start_at: float
    end_at: float
    window_s: float = DAY_S
    partitions: tuple[str, ...] = ("default",)
    timezone: str = "UTC"
    calendar: Calendar = "always"
    holidays: frozenset[str] = frozenset()
    _zone: ZoneInfo = field(init=False, repr=False, compare=False)
    _first_day: date = field(init=False, repr=False, compare=False)
    _count: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_zone", ZoneInfo(self.timezone))
        object.__setattr__(self, "_first_day", self._day(self.start_at))
        object.__setattr__(self, "_count", self._counted())

    @property
    def total(self) -> int:
        """The number after that of the last unit; some of those before it may be none."""
        return self._count * len(self.partitions)

    def unit(self, number: int) -> Window | None:
        """The unit of this number; None if it is not expected, by the calendar."""
        index, place = divmod(number, len(self.partitions))
        start_at, end_at = self.bounds(index)
        is_wanted = start_at < end_at and self.is_expected(start_at, end_at)
        return Window(self.partitions[place], start_at, end_at) if is_wanted else None

    def units(self, first: int = 0, last: int | None = None) -> Iterator[Window]:
        for number in range(first, self.total if last is None else last):
            unit = self.unit(number)
            if unit is not None:
                yield unit

    def expected(self) -> int:
        """How many units there are."""
        if self.calendar == "always" and not self.holidays and not self._days:
            return self.total
        return len(self.partitions) * sum(
            start_at < end_at and self.is_expected(start_at, end_at)
            for start_at, end_at in map(self.bounds, range(self._count))
        )

    def bounds(self, index: int) -> tuple[float, float]:
        """When the window of this number begins and ends; empty where a time zone skipped its days."""
        return self._cut(index), self._cut(index + 1)

    def _cut(self, index: int) -> float:
        return self.start_at if index == 0 else min(self._mark(index), self.end_at)

    def _mark(self, index: int) -> float:
        days = self._days
        if not days:
            return self.start_at + index * self.window_s
        day = self._first_day + timedelta(days=days * index)
        return datetime.combine(day, time.min, self._zone).timestamp()

    @property
    def _days(self) -> int:
        """How many days a window has; 0 if they are not whole."""
        return int(self.window_s // DAY_S) if self.window_s % DAY_S == 0 else 0

    def _counted(self) -> int:
        # Days may be short, and zones have skipped some: from a little too many, back to the last one.
        count = math.ceil((self.end_at - self.start_at) / self.window_s) + 3
        while count > 0 and (self.start_at if count == 1 else self._mark(count - 1)) >= self.end_at:
            count -= 1
        return count

    def is_expected(self, start_at: float, end_at: float) -> bool:
        """Whether any of these days is one on which there is something."""
        if self.calendar == "always" and not self.holidays:
            return True
        day, last = self._day(start_at), self._day(end_at - SLACK_S)
        while day <= last:
            is_weekend = self.calendar == "weekdays" and day.weekday() >= SATURDAY
            if not is_weekend and day.isoformat() not in self.holidays:
                return True
            day += timedelta(days=1)
        return False

    def _day(self, at: float) -> date:
        return datetime.fromtimestamp(at, self._zone).date()


def windows_of(options: RunOptions) -> Windows:
    """The windows that a backfill was started with."""
    return Windows(
        options.start_at or 0.0,
        options.end_at or 0.0,
        options.window_s or DAY_S,
        options.partitions,
        options.timezone,
        options.calendar,
        frozenset(options.holidays),
    )


@lru_cache(maxsize=16)
def expected_units(kind: RunKind, options: RunOptions) -> int:
    """How many units a run will have in all; 0 where that can't be said without looking."""
    if policy_of(kind, options).begins_with != "windows" or options.is_missing_only:
        return 0
    return windows_of(options).expected()


def moment(value: float | str | date, timezone: str, *, is_end: bool = False) -> float:
    """A day or a time as seconds since the epoch; what has no zone of its own is in the named one.

    A day that ends something is meant to its end.
    """
    if isinstance(value, (int, float)):
        return float(value)
    found = value if isinstance(value, date) else _read(value)
    if isinstance(found, datetime):
        in_zone = found if found.tzinfo is not None else found.replace(tzinfo=ZoneInfo(timezone))
        return in_zone.timestamp()
    day = found + timedelta(days=int(is_end))
    return datetime.combine(day, time.min, ZoneInfo(timezone)).timestamp()


def _read(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)


def gaps(window: Window, covered: Sequence[tuple[float, float]]) -> list[Window]:
    """What of a window is missing; `covered` is in the order of its starts, and may overlap."""
    found = []
    at = window.start_at
    for start_at, end_at in covered:
        if start_at >= window.end_at:
            break
        if start_at > at + SLACK_S:
            found.append(Window(window.partition, at, start_at))
        at = max(at, end_at)
    if at < window.end_at - SLACK_S:
        found.append(Window(window.partition, at, window.end_at))
    return found


def written(moment: datetime) -> str:
    """`2024-01-01T00:00:00Z`, with microseconds where there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
