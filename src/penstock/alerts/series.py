"""Two tests of a series of runs against its baseline.

The sharp test sees a change between two runs: the last few are all far from what is usual. The slow test sees
what no single run shows: the last days as a whole are far from the weeks before.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.alerts.baseline import (
    DAY_S,
    Baseline,
    Expected,
    Point,
    baseline_of,
    median,
    weekday_of,
)
from penstock.alerts.history import RunFigures
from penstock.alerts.measures import Measure
from penstock.counting import count

# A source that runs more often than this has weekdays, and is judged once it has seen them twice.
WEEKDAYS_MATTER_S = 3.5 * DAY_S
WEEKDAYS_SEEN_S = 14 * DAY_S
# A change must have lasted this long, whatever the number of runs: a source that runs every few minutes has
# more bad moments in a week than one that runs daily has in a year.
SHORTEST_S = 4 * 3600.0
MOST_NEEDED = 100
# A source with weekdays has holidays, too: what is usual on another weekday must last longer.
HOLIDAYS_S = 2 * DAY_S
# How far back a baseline goes.
SHARP_S = 56 * DAY_S
SLOW_S = 91 * DAY_S
# From so many runs on, a source is long known.
MATURE_RUNS = 40
# The slow test compares the last days, or the last few runs, with what was two weeks before them and earlier.
# They are more than a week: two holidays and a weekend are not most of them.
RECENT_S = 10 * DAY_S
RECENT_RUNS = 7
GAP_S = 14 * DAY_S
# Several days are less a matter of chance than a run is.
SLOW_FACTOR = 0.75
# For an alert that is open, the condition has ended only well inside of its limits.
HYSTERESIS = 0.5
# After so long, what is bad becomes what is usual.
FORGIVEN_S = 28 * DAY_S

TooFar = Callable[[float, float, float], bool]


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as a change: `too_far(value, centre, strictness)` by size, `deviations` by the spread."""

    too_far: TooFar
    runs: int
    deviations: float
    history: int
    at_least: int = 0


@dataclass(frozen=True, slots=True)
class Deviation:
    """A series is far from what is usual, since the run `first`. Values are on the measure's scale."""

    kind: Literal["sharp", "slow"]
    value: float
    expected: Expected
    mad: float
    first: RunFigures
    runs: int


@dataclass(frozen=True, slots=True)
class Series:
    """The runs of a source that have a value of one measure, oldest first, and these values."""

    measure: Measure
    runs: tuple[RunFigures, ...]
    values: tuple[float, ...]
    timezone: str

    @classmethod
    def of(cls, measure: Measure, runs: Sequence[RunFigures], timezone: str) -> Series:
        measured = [(run, measure.value(run)) for run in runs]
        known = [(run, value) for run, value in measured if value is not None]
        return cls(
            measure, tuple(run for run, _ in known), tuple(value for _, value in known), timezone
        )

    def why_silent(self, limits: Limits) -> str:
        """Why there is no baseline yet; empty where there is one."""
        known = self.runs[: -limits.runs]
        if len(known) < limits.history:
            needed = limits.history + limits.runs
            return f"{len(self.runs)} of {count(needed, 'run')} for a baseline"
        span = known[-1].started_at - known[0].started_at
        if not _has_seen_weekdays(span, len(known)):
            return f"{span / DAY_S:.0f} of {count(WEEKDAYS_SEEN_S / DAY_S, 'day')} for a baseline"
        return ""

    def deviation(self, limits: Limits, standing_since: float | None) -> Deviation | None:
        """How the last runs deviate, if they do; for an alert that is open, whether they still do."""
        if self.why_silent(limits):
            return None
        return self._sharp(limits, standing_since) or self._slow(limits, standing_since)

    def _sharp(self, limits: Limits, since: float | None) -> Deviation | None:
        last = self._last(limits.runs)
        strictness = 1.0 if since is None else HYSTERESIS
        suspects = self._suspects(last, limits, strictness)
        needed = len(last) if since is None else 1
        if len(suspects) < needed:
            return None
        before = self._before(self.runs[last[0]].started_at, since)
        baseline = self._baseline(before, SHARP_S, limits.history)
        if baseline is None:
            return None
        bad = [at for at in suspects if self._is_bad(at, baseline, limits, strictness)]
        if len(bad) < needed or not self._is_enough(bad, limits, strictness):
            return None
        first = bad[0]
        while first and self._is_bad(first - 1, baseline, limits, strictness):
            first -= 1
        if since is None and self._may_be_holiday(bad, first, baseline, limits):
            return None
        return self._deviation("sharp", bad[-1], baseline, first, len(self.runs) - first)

    def _may_be_holiday(
        self, bad: Sequence[int], first: int, baseline: Baseline, limits: Limits
    ) -> bool:
        """Whether it is a day or two that are like another weekday, such as a Sunday."""
        if not baseline.by_weekday or not self.measure.is_bad_when_low:
            return False
        if self.runs[-1].started_at - self.runs[first].started_at >= HOLIDAYS_S:
            return False
        quietest = min(centre for centre, _ in baseline.by_weekday.values())
        return not any(limits.too_far(self.values[at], quietest, 1.0) for at in bad)

    def _last(self, least: int) -> range:
        """The last runs that must all be bad: so many, and those of the last hours."""
        end, after = len(self.runs), self.runs[-1].started_at - SHORTEST_S
        first = bisect_right(self.runs, after, key=_started_at)
        return range(max(0, end - min(max(least, end - first), MOST_NEEDED)), end)

    def _suspects(self, wanted: range, limits: Limits, strictness: float) -> list[int]:
        """Those that are too far from the best value so far; others can't be too far from a usual one."""
        best = (max if self.measure.is_bad_when_low else min)(self.values)
        return [at for at in wanted if limits.too_far(self.values[at], best, strictness)]

    def _is_bad(self, at: int, baseline: Baseline, limits: Limits, strictness: float) -> bool:
        value, expected = self.values[at], self._expected(baseline, at)
        far = self._distance(value, expected.centre)
        return far >= limits.deviations * strictness * expected.spread and limits.too_far(
            value, expected.centre, strictness
        )

    def _slow(self, limits: Limits, since: float | None) -> Deviation | None:
        recent = self._recent()
        strictness = 1.0 if since is None else HYSTERESIS
        if len(recent) < RECENT_RUNS or not self._is_enough(recent, limits, strictness):
            return None
        if 2 * len(self._suspects(recent, limits, strictness)) < len(recent):
            return None
        before = self._before(self.runs[recent[0]].started_at - GAP_S, since)
        baseline = self._baseline(before, SLOW_S, limits.history)
        if baseline is None or not _has_seen_weekdays(baseline.span_s, baseline.counted):
            return None
        value, expected = self._middle(recent, baseline)
        needed = limits.deviations * SLOW_FACTOR * strictness * expected.spread
        if self._distance(value, expected.centre) < needed:
            return None
        if not limits.too_far(value, expected.centre, strictness):
            return None
        if not self._is_so_now(baseline, limits, strictness):
            return None
        first = self.runs[recent[0]]
        return Deviation("slow", value, expected, baseline.mad, first, len(recent))

    def _is_so_now(self, baseline: Baseline, limits: Limits, strictness: float) -> bool:
        """Whether the last runs are too far, too: days that had an outage among them are no slow change."""
        end, since = len(self.runs), self.runs[-1].started_at - DAY_S
        last = range(end - limits.runs, end)
        day = range(min(last[0], bisect_right(self.runs, since, key=_started_at)), end)
        value, expected = self._middle(day, baseline)
        return limits.too_far(value, expected.centre, strictness) and all(
            limits.too_far(self.values[at], self._expected(baseline, at).centre, strictness)
            for at in last
        )

    def _middle(self, recent: range, baseline: Baseline) -> tuple[float, Expected]:
        """Where the middle of these runs is, each compared with its weekday, and where it should be."""
        each = [self._expected(baseline, at) for at in recent]
        centre = median(one.centre for one in each)
        moved = median(self.values[at] - one.centre for at, one in zip(recent, each, strict=True))
        # The standard error of a median: of the recent one, and of that of the baseline.
        error = median(one.spread for one in each) * 1.2533
        error *= math.sqrt(1.0 / len(recent) + 1.0 / baseline.counted)
        return centre + moved, Expected(centre, error, baseline.counted)

    def _recent(self) -> range:
        return range(recent_from(self.runs), len(self.runs))

    def _before(self, at: float, since: float | None) -> float:
        """Where the baseline ends: before the change, so that it does not become usual while it is open."""
        if since is None:
            return at
        return min(at, max(since, self.runs[-1].started_at - FORGIVEN_S))

    def _baseline(self, before: float, span_s: float, least: int) -> Baseline | None:
        end = bisect_left(self.runs, before, key=_started_at)
        first = bisect_left(self.runs, before - span_s, key=_started_at)
        # A source that runs once a week has no more than eight of them in eight weeks.
        first = min(first, max(0, end - least))
        if end - first < least:
            return None
        return baseline_of([self._point(at) for at in range(first, end)])

    def _point(self, at: int) -> Point:
        started_at = self.runs[at].started_at
        return Point(started_at, self.values[at], weekday_of(started_at, self.timezone))

    def _expected(self, baseline: Baseline, at: int) -> Expected:
        weekday = weekday_of(self.runs[at].started_at, self.timezone)
        size = self.measure.out_of(self.runs[at])
        chance = self.measure.chance(baseline.centre_of(weekday), size)
        return baseline.expected(weekday, chance)

    def _distance(self, value: float, centre: float) -> float:
        return centre - value if self.measure.is_bad_when_low else value - centre

    def _is_enough(self, runs: Sequence[int], limits: Limits, strictness: float) -> bool:
        return sum(self.measure.of(self.runs[at]) for at in runs) >= limits.at_least * strictness

    def _deviation(
        self, kind: Literal["sharp"], at: int, baseline: Baseline, first: int, runs: int
    ) -> Deviation:
        expected = self._expected(baseline, at)
        return Deviation(kind, self.values[at], expected, baseline.mad, self.runs[first], runs)


def _has_seen_weekdays(span_s: float, runs: int) -> bool:
    """Whether so many runs over this time show each weekday twice, where the source runs often enough."""
    return span_s >= WEEKDAYS_SEEN_S or span_s / max(runs - 1, 1) >= WEEKDAYS_MATTER_S


def recent_from(runs: Sequence[RunFigures]) -> int:
    """Where the last days, or the last few runs, begin."""
    start = len(runs)
    while start and runs[start - 1].started_at > runs[-1].started_at - RECENT_S:
        start -= 1
    return max(0, min(start, len(runs) - RECENT_RUNS))


def is_calm(
    measure: Measure, runs: Sequence[RunFigures], limits: Limits, strictness: float
) -> bool:
    """Whether a source that is long known can't deviate, because its last days are near the best there is."""
    if measure.best is None or len(runs) < MATURE_RUNS:
        return False
    if runs[-1].started_at - runs[0].started_at < 2 * WEEKDAYS_SEEN_S:
        return False
    values = map(measure.value, runs[recent_from(runs) :])
    return not any(
        value is not None and limits.too_far(value, measure.best, strictness) for value in values
    )


def _started_at(run: RunFigures) -> float:
    return run.started_at
