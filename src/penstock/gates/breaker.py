"""Breakers: a source or host that fails again and again is left alone for a while, then tried with care.

    closed     everything may pass; what goes well and what fails is counted by time
    open       nothing may pass before `opens_at`
    half-open  as many at once as the ramp says: one, then as many more as went well, until it closes

A breaker that is open and whose time has come is half-open for everybody who looks at it: nobody has to
be there to write that down. It opens for twice as long each time in a row, up to a bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from penstock.settings.values import BreakerSettings

State = Literal["closed", "open", "half-open"]
Bucket = tuple[int, int, int]

# A window is counted in so many parts, none shorter than a second.
PARTS = 60
# What answers, if only with errors, is tried again after this long at the latest: a hundred broken pages that
# stand together in a queue are a hundred tries.
LONGEST_ANSWERED_S = 120.0
# A host has no concurrency of its own; its breaker closes when so many requests at once went well.
HOST_RAMP = 8
# After so many trips in a row, about a day, what fails at a closed door counts as a try again: a job that
# brings its source down by itself ends in quarantine.
EXCUSED_TRIPS = 50


@dataclass(frozen=True, slots=True)
class Breaker:
    """One breaker. `opened_at` is when it last left closed; `counts_until` says until when what went
    well is worth telling, because something failed not long ago. `trying` requests to a host that is
    half-open are under way; who had them may have died, so they are given up at `trying_until`. So many
    failed `in_a_row`, with nothing that went well in between.
    """

    state: State = "closed"
    since: float = 0.0
    opens_at: float = 0.0
    opened_at: float = 0.0
    counts_until: float = 0.0
    trips: int = 0
    ramp: int = 0
    buckets: tuple[Bucket, ...] = ()
    reason: str = ""
    trying: int = 0
    trying_until: float = 0.0
    in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """What was seen: by time what went well and what failed, and why the last of them did.

    `away` were turned away at a host whose own breaker is open, for the next `away_s` seconds. Something
    `is_well` just now; what else went well may have been before what failed last.
    """

    buckets: tuple[Bucket, ...] = ()
    away: int = 0
    away_s: float = 0.0
    reason: str = ""
    is_well: bool = False
    # Jobs that had failed before and failed again: no news of a breaker that is closed, or one page
    # that is broken for good would open it; but as good as any other of one that is tried.
    again: int = 0
    # All that failed was answered, with an error: then it may be the pages, and not what they are asked of.
    is_answer: bool = False

    @property
    def ok(self) -> int:
        return sum(ok for _, ok, _ in self.buckets)

    @property
    def failed(self) -> int:
        return sum(failed for _, _, failed in self.buckets)


def part_s(rule: BreakerSettings) -> float:
    return max(1.0, rule.window_s / PARTS)


def part_of(rule: BreakerSettings, now: float) -> int:
    """The part of time that this moment belongs to."""
    return int(now // part_s(rule))


def state_at(breaker: Breaker, now: float) -> State:
    if breaker.state == "open" and breaker.opens_at <= now:
        return "half-open"
    return breaker.state


def ramp_at(state: str, opens_at: float, ramp: int, now: float) -> int | None:
    """How many may pass at once; None is as many as like."""
    if state == "closed":
        return None
    if state == "open":
        return 1 if opens_at <= now else 0
    return max(1, ramp)


def follow(
    breaker: Breaker, tally: Tally, rule: BreakerSettings, cap: int, now: float, chance: float
) -> Breaker:
    """What a breaker is after this was seen."""
    state = state_at(breaker, now)
    if state == "open":
        return breaker  # what was under way when it opened says nothing new
    if state == "half-open":
        return _try(_half_open(breaker, now), tally, rule, cap, now, chance)
    missed = ((part_of(rule, now), 0, tally.away),) if tally.away else ()
    seen = merged(breaker.buckets, (*tally.buckets, *missed), rule, now)
    bad = tally.failed + tally.away
    counted = replace(
        breaker,
        buckets=seen,
        counts_until=now + rule.window_s if bad else breaker.counts_until,
        in_a_row=0 if tally.is_well else breaker.in_a_row + bad,
    )
    if not bad or not _is_bad(counted, rule):
        return counted
    if tally.failed:
        return trip(counted, _told(seen, tally.reason), _bounded(rule, tally), now, chance)
    return wait_for(counted, tally, now)


def merged(
    own: Iterable[Bucket], others: Iterable[Bucket], rule: BreakerSettings, now: float
) -> tuple[Bucket, ...]:
    """Both together, without what is older than the window."""
    oldest, newest = part_of(rule, now - rule.window_s), part_of(rule, now)
    found: dict[int, tuple[int, int]] = {}
    for part, ok, failed in (*own, *others):
        # A part of the future is from a clock that was set back.
        if oldest < part <= newest:
            known = found.get(part, (0, 0))
            found[part] = (known[0] + ok, known[1] + failed)
    return tuple((part, ok, failed) for part, (ok, failed) in sorted(found.items()))


def trip(
    breaker: Breaker, reason: str, rule: BreakerSettings, now: float, chance: float
) -> Breaker:
    """Open it, for twice as long as the last time in a row, give or take a little."""
    trips = breaker.trips + 1
    open_for_s = min(rule.longest_s, rule.open_for_s * 2.0 ** min(trips - 1, 40))
    open_for_s *= 1.0 + 0.2 * chance  # longer, not sooner: and not all at the same moment
    return _opened(breaker, now, now + open_for_s, trips, reason)


def wait_for(breaker: Breaker, tally: Tally, now: float) -> Breaker:
    """Open it until the host may be tried again that turned its jobs away; that is no trip of its own."""
    return _opened(breaker, now, now + tally.away_s, breaker.trips, tally.reason)


def close(breaker: Breaker, now: float, reason: str) -> Breaker:
    return Breaker("closed", now, opened_at=breaker.opened_at, reason=reason)


def half_open(breaker: Breaker, now: float) -> Breaker:
    """Written down when its time has come and the first is let through."""
    return _half_open(breaker, now) if state_at(breaker, now) == "half-open" else breaker


def is_excused(breaker: Breaker) -> bool:
    """Whether a failure says nothing about the job: what it asked is known to be out of order."""
    return breaker.state == "open" and breaker.trips < EXCUSED_TRIPS


def _opened(breaker: Breaker, now: float, opens_at: float, trips: int, reason: str) -> Breaker:
    opened_at = now if breaker.state == "closed" else breaker.opened_at
    return Breaker("open", now, opens_at, opened_at, 0.0, trips, 0, (), reason)


def _half_open(breaker: Breaker, now: float) -> Breaker:
    if breaker.state == "half-open":
        return breaker
    return replace(breaker, state="half-open", since=now, ramp=1, buckets=())


def _try(
    breaker: Breaker, tally: Tally, rule: BreakerSettings, cap: int, now: float, chance: float
) -> Breaker:
    """While it is half-open: what failed is weighed against what went well since, so that one failure in
    a hundred does not keep a large source from coming back."""
    first = part_of(rule, breaker.since)
    if tally.again:
        failed_again = (part_of(rule, now), 0, tally.again)
        tally = replace(tally, buckets=(*tally.buckets, failed_again), again=0)
    news = tuple(bucket for bucket in tally.buckets if bucket[0] >= first)
    well = sum(b[1] for b in news)
    seen = merged(breaker.buckets, news, rule, now)
    ok, failed = sum(b[1] for b in seen), sum(b[2] for b in seen)
    if tally.failed and failed >= rule.ratio * (ok + failed):
        return trip(breaker, _told(seen, tally.reason), _bounded(rule, tally), now, chance)
    if tally.away and not well:
        return wait_for(breaker, tally, now)
    ramp = max(1, breaker.ramp) + well
    if well and ramp >= cap:
        return close(breaker, now, f"{ok} of {ok + failed} went well")
    return replace(breaker, ramp=ramp, buckets=seen)


def _bounded(rule: BreakerSettings, tally: Tally) -> BreakerSettings:
    if not tally.is_answer:
        return rule
    longest_s = min(rule.longest_s, max(LONGEST_ANSWERED_S, rule.open_for_s))
    return msgspec.structs.replace(rule, longest_s=longest_s)


def _told(seen: tuple[Bucket, ...], reason: str) -> str:
    ok, failed = sum(b[1] for b in seen), sum(b[2] for b in seen)
    return f"{failed} of {ok + failed} failed" + (f", the last with {reason}" if reason else "")


def _is_bad(breaker: Breaker, rule: BreakerSettings) -> bool:
    """Too large a share of enough, or enough failures with nothing between them that went well: else a
    source that has just answered a thousand times would have to fail a thousand times."""
    ok, failed = sum(b[1] for b in breaker.buckets), sum(b[2] for b in breaker.buckets)
    if ok + failed >= rule.at_least and failed >= rule.ratio * (ok + failed):
        return True
    return breaker.in_a_row >= rule.at_least
