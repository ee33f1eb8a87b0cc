"""What the rules about runs measure: yield, shares of failures, rejects and duplicates, and quality.

A measure is compared on a scale on which a change of the same size means the same: yields by their logarithm,
shares and scores as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from penstock.alerts.history import RunFigures

# Below these, a difference is no news, however steady the source has been.
LEAST_SPREAD = 0.01


@dataclass(frozen=True, slots=True)
class Measure:
    """How a run is measured. `of` and `out_of` count; `value` is on the scale, None where there is none."""

    name: str
    unit: str
    value: Callable[[RunFigures], float | None]
    of: Callable[[RunFigures], int]
    out_of: Callable[[RunFigures], int]
    # What chance alone makes of it in a run of this size around this centre, on the scale.
    chance: Callable[[float, int], float]
    # From the scale to what people read.
    shown: Callable[[float], float] = lambda value: value
    is_bad_when_low: bool = False
    # The best value there can be, where there is one.
    best: float | None = None


def _binomial(centre: float, size: int) -> float:
    # A share of which none was seen yet is not known to be nothing.
    likely = min(max(centre, 1.0 / (size + 2)), 0.5)
    return max(LEAST_SPREAD, math.sqrt(likely * (1.0 - likely) / max(size, 1)))


def _poisson(centre: float, _: int) -> float:
    return max(0.05, 1.0 / math.sqrt(max(math.expm1(centre), 0.0) + 1.0))


def _share(
    name: str, of: Callable[[RunFigures], int], out_of: Callable[[RunFigures], int]
) -> Measure:
    def value(run: RunFigures) -> float | None:
        whole = out_of(run)
        return of(run) / whole if whole else None

    return Measure(name, "share", value, of, out_of, _binomial, best=0.0)


def _saved(run: RunFigures) -> int:
    return run.new + run.changed + run.unchanged


YIELD = Measure(
    "yield",
    "records",
    lambda run: math.log1p(run.new + run.changed + run.unchanged),
    _saved,
    _saved,
    _poisson,
    math.expm1,
    is_bad_when_low=True,
)
FAILURES = _share("failed jobs", lambda run: run.failed, lambda run: run.jobs)
REJECTS = _share(
    "rejected records",
    lambda run: run.rejected,
    lambda run: run.rejected + run.new + run.changed + run.unchanged,
)
DUPLICATES = _share(
    "duplicates",
    lambda run: run.duplicates,
    lambda run: run.duplicates + run.new + run.changed + run.unchanged,
)
QUALITY = Measure(
    "mean score",
    "score",
    lambda run: run.quality,
    _saved,
    _saved,
    lambda centre, _: max(0.02 * abs(centre), 1e-9),
    is_bad_when_low=True,
)
