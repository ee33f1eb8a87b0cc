"""The test behind the guardrails: Fisher's exact test over strata, one-sided.

Each page is bad or not. If it made no difference which release performs a page, then of the bad pages of
one stratum any could as well have been the canary's: their number there has a hypergeometric distribution,
and over all strata the sum of these. The test asks how likely so many, or more, would be. It is exact for
few pages and rare events, where a normal approximation stops healthy canaries. With strata of one page each
it is McNemar's test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Beyond so many possible sums the exact distribution takes long, and is normal in all but name.
MOST_SUMS = 2000


@dataclass(frozen=True, slots=True)
class Stratum:
    """Pages that may be compared: how many canary and control have performed, and how many were bad."""

    canary: int
    canary_bad: int
    control: int
    control_bad: int


def chance_of_more(strata: Iterable[Stratum]) -> float:
    """The probability of at least so many bad pages of the canary if the release made no difference."""
    told = [each for each in strata if each.canary and each.control]
    seen = sum(each.canary_bad for each in told)
    least = sum(_least(each) for each in told)
    sums = sum(_most(each) - _least(each) for each in told)
    if seen <= least:
        return 1.0
    if sums > MOST_SUMS:
        return _normal_tail(told, seen)
    tail = sum(_sums_of(told)[seen - least :])
    return min(1.0, max(0.0, tail))


def _least(each: Stratum) -> int:
    return max(0, each.canary_bad + each.control_bad - each.control)


def _most(each: Stratum) -> int:
    return min(each.canary, each.canary_bad + each.control_bad)


def _sums_of(strata: Sequence[Stratum]) -> list[float]:
    """The probability of each sum, from the least that is possible."""
    found = [1.0]
    for each in strata:
        ways = _ways(each)
        if len(ways) == 1:
            continue
        new = [0.0] * (len(found) + len(ways) - 1)
        for at, one in enumerate(found):
            for further, other in enumerate(ways):
                new[at + further] += one * other
        found = new
    return found


def _ways(each: Stratum) -> list[float]:
    """The hypergeometric probabilities of one stratum."""
    total, bad = each.canary + each.control, each.canary_bad + each.control_bad
    whole = _choices(total, each.canary)
    return [
        math.exp(_choices(bad, number) + _choices(total - bad, each.canary - number) - whole)
        for number in range(_least(each), _most(each) + 1)
    ]


def _choices(of: int, number: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(number + 1) - math.lgamma(of - number + 1)


def _normal_tail(strata: Sequence[Stratum], seen: int) -> float:
    """With a continuity correction: Cochran, Mantel and Haenszel."""
    mean = variance = 0.0
    for each in strata:
        total, bad = each.canary + each.control, each.canary_bad + each.control_bad
        mean += each.canary * bad / total
        if total > 1:
            variance += (
                each.canary * each.control * bad * (total - bad) / (total * total * (total - 1))
            )
    if variance <= 0.0:
        return 1.0
    return 0.5 * math.erfc((seen - 0.5 - mean) / math.sqrt(2.0 * variance))
