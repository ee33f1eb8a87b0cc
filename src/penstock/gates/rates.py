"""Rates: when the next request of a source may go out.

Requests are spread evenly over time, whoever sends them: each is given a place of its own, one interval
after the one before it. Idle time is not saved up. What else may hold a single request back (a budget, a
host's limits, a breaker) answers the same want with the same verdict: see `gates/admission.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from penstock.gates.project_terms import NO_TERMS, Terms

# Who would wait longer for a place is given none, and told when to ask again.
LONGEST_WAIT_S = 5.0
# A place is used this late at the most. At low rates later: one interval, but no longer than a second.
LATEST_S, LATEST_AT_LOW_RATES_S = 0.25, 1.0


@dataclass(frozen=True, slots=True)
class RateRequest:
    """A request that is about to go out: whose rate it counts against, that rate, where to and for whom.

    It brings no more than `max_bytes`, in no longer than `timeout_s`. The door fills in its `terms`.
    """

    key: str
    rate_per_s: float | None
    host: str = ""
    run_id: int = 0
    max_bytes: int = 0
    timeout_s: float = 0.0
    terms: Terms = NO_TERMS
    # Money that it may take at the most, beside what every request of its source takes.
    most_money: float = 0.0
    has_breaker: bool = True
    # For a job that has failed before: that it fails again says nothing new about the host.
    is_again: bool = False
    # It counts against nothing, robots.txt: only its host's hours are asked.
    is_uncounted: bool = False
    # It counts against its host's limits and nothing else, robots.txt that was moved to another host.
    is_of_host: bool = False
    # It would rather be told to come back than wait for longer.
    patience_s: float = inf

    @property
    def rates(self) -> list[tuple[str, float]]:
        """What it needs a place in, each with its rate: the source's own, and the host's for all."""
        found = [(self.key, self.rate_per_s)] if self.rate_per_s else []
        host = self.terms.host
        if host is not None and host.rate_per_s:
            found.append((host.key, host.rate_per_s))
        return found


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a request that went out. A host that answers is well, whatever it answers below 500.

    `is_well` is None when nothing can be said: it was never sent, or stopped by us, or asked to wait.
    """

    is_well: bool | None
    bytes: int
    seconds: float
    error: str = ""
    is_answer: bool = False
    # It never went out: what was counted for it is given back.
    is_void: bool = False
    # Of the money that was counted for it at the most, what it has taken.
    money: float = 0.0


NOTHING_SENT = Sent(None, 0, 0.0, is_void=True)


@dataclass(frozen=True, slots=True)
class RateDecision:
    """May it go out? Without a gate yes, in `wait_s`; else that gate is closed: ask again in `wait_s`.

    A span and not a time: who is told may have a clock that is an hour off. It was decided when the store's
    clock showed `now`, and the asking process's monotonic clock `given_at`.
    """

    wait_s: float
    gate: str = ""
    reason: str = ""
    now: float = 0.0
    given_at: float = 0.0


def latest_s(want: RateRequest) -> float:
    """How late a request may use its place; who stood still must not send all its places at once."""
    intervals = [1.0 / rate_per_s for _, rate_per_s in want.rates]
    return max(LATEST_S, min([LATEST_AT_LOW_RATES_S, *intervals]))


def places_soon(next_at: float, rate_per_s: float, now: float) -> int:
    """How many requests would be given a place now; none when the next one is too far off.

    A next place that can't be true counts as one: the request that asks for it sets it right.
    """
    ahead_s = max(0.0, next_at - now)
    if ahead_s > LONGEST_WAIT_S + 1.0 / rate_per_s:
        return 1
    if ahead_s > LONGEST_WAIT_S:
        return 0
    return 1 + int((LONGEST_WAIT_S - ahead_s) * rate_per_s)


def place_of(want: RateRequest, free_at: dict[str, float], now: float) -> float:
    """The next place that is free for it in everything that it needs one in.

    A next place that can't have been given by this clock at this rate is brought back to the last one
    that can: a clock that was set back, or a rate that was raised, costs seconds and not hours.
    """
    at = now
    for key, rate_per_s in want.rates:
        last_at = now + LONGEST_WAIT_S + 1.0 / rate_per_s
        free_at[key] = min(max(now, free_at.get(key, now)), last_at)
        at = max(at, free_at[key])
    return at


def give_place(want: RateRequest, free_at: dict[str, float], now: float) -> RateDecision:
    """Give a request a place in everything that it needs one in, the same one in all; or in nothing.

    `free_at`, the next place of each key, is brought up to date.
    """
    at = place_of(want, free_at, now)
    if at - now > LONGEST_WAIT_S:
        return RateDecision(at - now, "rate")
    for key, rate_per_s in want.rates:
        free_at[key] = at + 1.0 / rate_per_s
    return RateDecision(at - now)
