"""The buckets of histograms: each value is counted under the upper bound of its bucket."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from math import inf

INFINITE = "+Inf"
SECONDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
)  # fmt: skip
TURNS = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
SCORES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
BUCKETS: dict[str, tuple[float, ...]] = {
    "attempt_seconds": SECONDS,
    "fetch_seconds": SECONDS,
    "quality": SCORES,
    "turn_seconds": TURNS,
}
_LABELS = {measure: (*(f"{b:g}" for b in bounds), INFINITE) for measure, bounds in BUCKETS.items()}


def bucket(measure: str, value: float) -> str:
    """The label of the bucket that a value belongs to."""
    return _LABELS[measure][bisect_left(BUCKETS[measure], value)]


def labels(measure: str) -> tuple[str, ...]:
    """The labels of all buckets of a histogram, in their order."""
    return _LABELS[measure]


def bound(label: str) -> float:
    """The upper bound that a label stands for."""
    return inf if label == INFINITE else float(label)


def quantile(measure: str, counts: Mapping[str, float], q: float) -> float | None:
    """The value below which this part of all values is, estimated within its bucket; None without values.

    Of what is above the last bound, the last bound is all that is known.
    """
    rank = q * sum(counts.values())
    passed = lower = 0.0
    for label in labels(measure):
        count, upper = counts.get(label, 0.0), bound(label)
        if count and passed + count >= rank:
            return lower if upper == inf else lower + (upper - lower) * (rank - passed) / count
        passed, lower = passed + count, upper
    return None
