"""Which runs the rules see: the newest ones, and a sample of those before where a source runs often.

A source that runs every quarter of an hour has 8,700 runs in three months, which is too many to read after
each run. Of its newest runs all are read, of the others a few hundred from the whole time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DAY_S = 86_400.0
# A baseline goes back this far. A source that runs once a week needs more time for enough runs.
USUAL_S, LONGEST_S = 91 * DAY_S, 400 * DAY_S
LEAST_RUNS, MOST_RUNS = 40, 400
# Of more than MOST_RUNS in the usual time: so many newest runs, and about so many of the others.
NEWEST, SAMPLED = 200, 200
# A run is chosen by its number, multiplied by the golden ratio: evenly over time, and without a rhythm that a
# schedule could share. The store's query does the same.
WHOLE, FACTOR = 1 << 24, 10_368_889


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the newest runs begin in a list of runs, and the share of earlier ones to read, out of WHOLE."""

    first: int
    share: int = 0


def plan_of(started: Sequence[float], now: float) -> Plan:
    """How to go on after the newest MOST_RUNS (or fewer, if there are no more) were read, oldest first."""
    if len(started) == MOST_RUNS and started[0] > now - USUAL_S:
        span = max(started[-1] - started[-NEWEST], 1.0)
        usual = USUAL_S / span * NEWEST
        return Plan(len(started) - NEWEST, min(WHOLE, int(WHOLE * SAMPLED / usual)))
    recent = sum(at > now - USUAL_S for at in started)
    return Plan(max(0, len(started) - max(recent, LEAST_RUNS)))


def is_sampled(run: int, share: int) -> bool:
    return run % WHOLE * FACTOR % WHOLE < share
