"""Baselines: what is usual for a source, from its own history.

Robust against outliers: the median, and a spread from the median absolute deviation (MAD) or from the outer
tenth, whichever is larger. By weekday where the weekdays differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

DAY_S = 86400.0
# The factor that makes a MAD comparable to a standard deviation.
MAD_TO_SIGMA = 1.4826
# Weekdays matter where they explain this much of the mean distance from the median. Medians of few values fit
# these values by themselves, so random weekdays explain about a quarter.
SEASONAL_RATIO = 0.6
SEASONAL_SPAN_S = 21 * DAY_S
SEASONAL_LEAST = 3


class Point(NamedTuple):
    """One value, and the weekday it belongs to."""

    at: float
    value: float
    weekday: int


@dataclass(frozen=True, slots=True)
class Expected:
    """What is usual at one moment: the centre, how far values usually are from it, and how many there are."""

    centre: float
    spread: float
    counted: int


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is usual. `by_weekday` holds medians, and is empty where weekdays do not matter."""

    centre: float
    mad: float
    spread: float
    counted: int
    span_s: float
    by_weekday: dict[int, tuple[float, int]]

    def centre_of(self, weekday: int) -> float:
        return self.by_weekday[weekday][0] if weekday in self.by_weekday else self.centre

    def expected(self, weekday: int, least_spread: float = 0.0) -> Expected:
        """At this weekday. Of few values the centre itself is uncertain, which widens the spread."""
        centre, counted = self.by_weekday.get(weekday, (self.centre, self.counted))
        wider = math.sqrt(1.0 + math.pi / 2.0 / counted)
        return Expected(centre, max(self.spread, least_spread) * wider, counted)


def median(values: Iterable[float]) -> float:
    """As the one of the standard library, which takes twice as long over its checks."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2.0


def baseline_of(points: Sequence[Point]) -> Baseline:
    """The baseline of at least one point."""
    values = [point.value for point in points]
    overall = median(values)
    weekdays = _weekdays(points, overall)
    centred = [point.value - weekdays.get(point.weekday, (overall, 0))[0] for point in points]
    mad = median(map(abs, centred))
    spread, span_s = max(mad * MAD_TO_SIGMA, _outer(centred)), points[-1].at - points[0].at
    return Baseline(overall, mad, spread, len(values), span_s, weekdays)


def _outer(centred: Sequence[float]) -> float:
    """The spread that the outer tenth speaks of: a source with bursts has a small MAD and still bursts."""
    distances = sorted(map(abs, centred))
    return distances[max(0, math.ceil(0.9 * len(distances)) - 1)] / 1.645


def _weekdays(points: Sequence[Point], overall: float) -> dict[int, tuple[float, int]]:
    if points[-1].at - points[0].at < SEASONAL_SPAN_S:
        return {}
    groups: dict[int, list[float]] = {}
    for point in points:
        groups.setdefault(point.weekday, []).append(point.value)
    found = {
        day: (median(values), len(values))
        for day, values in groups.items()
        if len(values) >= SEASONAL_LEAST
    }
    if len(found) < 2:
        return {}
    centres = {day: found.get(day, (overall, 0))[0] for day in groups}
    unexplained = sum([abs(value - centres[day]) for day in groups for value in groups[day]])
    distance = sum([abs(point.value - overall) for point in points])
    return found if unexplained < SEASONAL_RATIO * distance else {}


def longest_streak(flags: Iterable[bool]) -> int:
    """How many in a row were true at most."""
    longest = present = 0
    for flag in flags:
        present = present + 1 if flag else 0
        longest = max(longest, present)
    return longest


@lru_cache(maxsize=100_000)
def weekday_of(at: float, timezone: str) -> int:
    return datetime.fromtimestamp(at, _zone(timezone)).weekday()


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
