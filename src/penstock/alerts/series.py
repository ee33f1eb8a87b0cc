"""Two tests of a series of runs against its baseline.

The sharp test sees a change between two runs: the last few are all far from what is usual. The slow test sees
what no single run shows: the last week as a whole is far from the weeks before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from penstock.alerts.baseline import (
    DAY_S,
    Baseline,
    Expected,
    Point,
    baseline_of,
    weekday_of,
)
from penstock.alerts.history import RunFigures
from penstock.alerts.measures import Measure
from penstock.counting import count

# A source that runs more often than this has weekdays, and is judged once it has seen them twice.
WEEKDAYS_MATTER_S = 3.5 * DAY_S
WEEKDAYS_SEEN_S = 14 * DAY_S
# How far back a baseline goes.
SHARP_S = 56 * DAY_S
SLOW_S = 91 * DAY_S
MOST_RUNS = 400
# The slow test compares the last week, or the last few runs, with what was two weeks before it and earlier.
RECENT_S = 7 * DAY_S
RECENT_RUNS = 5
GAP_S = 14 * DAY_S
# A whole week is less a matter of chance than a run is.
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
    """The runs of a source that have a value of one measure, oldest first."""

    measure: Measure
    runs: tuple[RunFigures, ...]
    points: tuple[Point, ...]

    @classmethod
    def of(cls, measure: Measure, runs: Sequence[RunFigures], timezone: str) -> Series:
        kept, points = [], []
        for run in runs[-MOST_RUNS:]:
            value = measure.value(run)
            if value is not None:
                kept.append(run)
                points.append(Point(run.started_at, value, weekday_of(run.started_at, timezone)))
        return cls(measure, tuple(kept), tuple(points))

    def why_silent(self, limits: Limits) -> str:
        """Why there is no baseline yet; empty where there is one."""
        known = self.points[: -limits.runs]
        if len(known) < limits.history:
            return f"{len(known)} of {count(limits.history, 'run')} for a baseline"
        span = known[-1].at - known[0].at
        if span / (len(known) - 1) < WEEKDAYS_MATTER_S and span < WEEKDAYS_SEEN_S:
            return f"{span / DAY_S:.0f} of {count(WEEKDAYS_SEEN_S / DAY_S, 'day')} for a baseline"
        return ""

    def deviation(self, limits: Limits, standing_since: float | None) -> Deviation | None:
        """How the last runs deviate, if they do; for an alert that is open, whether they still do."""
        if self.why_silent(limits):
            return None
        return self._sharp(limits, standing_since) or self._slow(limits, standing_since)

    def _sharp(self, limits: Limits, since: float | None) -> Deviation | None:
        last = range(len(self.points) - limits.runs, len(self.points))
        before = self._before(self.points[last[0]].at, since)
        baseline = self._baseline(before, SHARP_S, limits.history)
        if baseline is None:
            return None
        strictness = 1.0 if since is None else HYSTERESIS
        bad = [at for at in last if self._is_bad(at, baseline, limits, strictness)]
        if len(bad) < (limits.runs if since is None else 1) or not self._is_enough(bad, limits):
            return None
        first = bad[0]
        while first and self._is_bad(first - 1, baseline, limits, strictness):
            first -= 1
        return self._deviation("sharp", bad[-1], baseline, first, len(self.points) - first)

    def _is_bad(self, at: int, baseline: Baseline, limits: Limits, strictness: float) -> bool:
        point = self.points[at]
        expected = self._expected(baseline, point.weekday, at)
        far = self._distance(point.value, expected.centre)
        return far >= limits.deviations * strictness * expected.spread and limits.too_far(
            point.value, expected.centre, strictness
        )

    def _slow(self, limits: Limits, since: float | None) -> Deviation | None:
        recent = self._recent()
        before = self._before(self.points[recent[0]].at - GAP_S, since)
        baseline = self._baseline(before, SLOW_S, limits.history)
        if baseline is None or len(recent) < RECENT_RUNS or not self._is_enough(recent, limits):
            return None
        strictness = 1.0 if since is None else HYSTERESIS
        each = [self._expected(baseline, self.points[at].weekday, at) for at in recent]
        centre = median(one.centre for one in each)
        moved = median(
            self.points[at].value - one.centre for at, one in zip(recent, each, strict=True)
        )
        # The standard error of a median, twice: the recent one, and that of the baseline.
        error = median(one.spread for one in each) * 1.2533
        error *= math.sqrt(1.0 / len(recent) + 1.0 / baseline.counted)
        far = self._distance(centre + moved, centre)
        if far < limits.deviations * SLOW_FACTOR * strictness * error:
            return None
        if not limits.too_far(centre + moved, centre, strictness):
            return None
        expected = Expected(centre, error, baseline.counted)
        first = self.runs[recent[0]]
        return Deviation("slow", centre + moved, expected, baseline.mad, first, len(recent))

    def _recent(self) -> range:
        end = len(self.points)
        start = end
        while start and self.points[start - 1].at > self.points[-1].at - RECENT_S:
            start -= 1
        return range(max(0, min(start, end - RECENT_RUNS)), end)

    def _before(self, at: float, since: float | None) -> float:
        """Where the baseline ends: before the change, so that it does not become usual while it is open."""
        if since is None:
            return at
        return min(at, max(since, self.points[-1].at - FORGIVEN_S))

    def _baseline(self, before: float, span_s: float, least: int) -> Baseline | None:
        known = [p for p in self.points if p.at < before]
        within = [p for p in known if p.at >= before - span_s]
        # A source that runs once a week has no more than eight of them in eight weeks.
        used = within if len(within) >= least else known[-least:]
        return baseline_of(used) if len(used) >= least else None

    def _expected(self, baseline: Baseline, weekday: int, at: int) -> Expected:
        bare = baseline.expected(weekday)
        size = self.measure.out_of(self.runs[at])
        return baseline.expected(weekday, self.measure.chance(bare.centre, size))

    def _distance(self, value: float, centre: float) -> float:
        return centre - value if self.measure.is_bad_when_low else value - centre

    def _is_enough(self, runs: Sequence[int], limits: Limits) -> bool:
        return sum(self.measure.of(self.runs[at]) for at in runs) >= limits.at_least

    def _deviation(
        self, kind: Literal["sharp"], at: int, baseline: Baseline, first: int, runs: int
    ) -> Deviation:
        expected = self._expected(baseline, self.points[at].weekday, at)
        return Deviation(
            kind, self.points[at].value, expected, baseline.mad, self.runs[first], runs
        )
