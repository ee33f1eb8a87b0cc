"""Breakers: open on failures, tried with care, closed when enough went well; in pure values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.gates.breaker import (
    EXCUSED_TRIPS,
    Breaker,
    Tally,
    close,
    follow,
    half_open,
    is_excused,
    part_of,
    ramp_at,
    state_at,
)
from penstock.gates.decide import concurrency_of, decide, first_closed
from penstock.gates.lane import Allowance, BreakerFacts, Closed, Head, Lane, LaneLimits
from penstock.settings.values import BreakerSettings

RULE = BreakerSettings()
NOW = 1_800_000_000.0
CAP = 8


def seen(now: float, ok: int = 0, failed: int = 0, rule: BreakerSettings = RULE) -> Tally:
    bucket = (part_of(rule, now), ok, failed)
    return Tally((bucket,), reason="it said 500", is_well=ok > 0)


def after(breaker: Breaker, now: float, ok: int = 0, failed: int = 0) -> Breaker:
    return follow(breaker, seen(now, ok, failed), RULE, CAP, now, 0.5)


def opened(now: float = NOW) -> Breaker:
    return after(Breaker(), now, failed=10)


def test_it_opens_when_enough_ended_and_half_of_it_failed() -> None:
    assert after(Breaker(), NOW, ok=6, failed=5).state == "closed"
    assert after(Breaker(), NOW, ok=5, failed=4).state == "closed", "not enough yet"
    broken = after(Breaker(), NOW, ok=5, failed=5)
    assert broken.state == "open"
    assert (broken.since, broken.opened_at, broken.trips) == (NOW, NOW, 1)
    assert RULE.open_for_s <= broken.opens_at - NOW <= 1.2 * RULE.open_for_s
    assert broken.reason == "5 of 10 failed, the last with it said 500"


def test_what_is_older_than_the_window_does_not_count() -> None:
    early = after(Breaker(), NOW, ok=1, failed=4)
    assert after(early, NOW + RULE.window_s + 1, ok=1, failed=4).state == "closed"
    assert after(early, NOW + RULE.window_s - 1, ok=1, failed=4).state == "open"


def test_a_thousand_successes_do_not_ask_for_a_thousand_failures() -> None:
    busy = after(Breaker(), NOW, ok=1000)
    once = after(busy, NOW, failed=9)
    assert once.state == "closed"
    assert after(once, NOW, failed=1).state == "open", "nothing has gone well since"
    assert after(after(once, NOW, ok=1), NOW, failed=1).state == "closed"


def test_open_it_lets_nothing_pass_and_hears_nothing() -> None:
    broken = opened()
    just_before = broken.opens_at - 0.001
    assert ramp_at(broken.state, broken.opens_at, broken.ramp, just_before) == 0
    assert after(broken, just_before, ok=100) == broken
    assert after(broken, just_before, failed=100) == broken


def test_when_its_time_has_come_it_is_half_open_for_whoever_looks() -> None:
    broken = opened()
    assert state_at(broken, broken.opens_at) == "half-open"
    assert ramp_at(broken.state, broken.opens_at, broken.ramp, broken.opens_at) == 1
    assert half_open(broken, broken.opens_at).state == "half-open"
    assert half_open(broken, broken.opens_at - 1) == broken


def test_it_ramps_by_what_went_well_and_closes_at_the_cap() -> None:
    broken = opened()
    now, ramps = broken.opens_at, []
    while broken.state != "closed":
        going = ramp_at(broken.state, broken.opens_at, broken.ramp, now) or 0
        ramps.append(going)
        now += 1
        broken = after(broken, now, ok=going)
    assert ramps == [1, 2, 4]
    assert (broken.trips, broken.opens_at) == (0, 0.0)
    assert broken.opened_at == NOW, "the window that was missed is known"


def test_each_failed_try_doubles_the_wait_up_to_the_longest() -> None:
    broken, waits = opened(), []
    for _ in range(10):
        waits.append(broken.opens_at - broken.since)
        broken = after(broken, broken.opens_at, failed=1)
    assert waits[:3] == [1.1 * 30, 1.1 * 60, 1.1 * 120]
    assert max(waits) <= 1.2 * RULE.longest_s
    assert waits == sorted(waits)
    assert broken.trips == 11
    assert broken.opened_at == NOW


def test_what_answers_with_errors_is_tried_again_within_minutes() -> None:
    """Broken pages that stand together in a queue can't hold up the others for days."""
    broken, waits = opened(), []
    for _ in range(10):
        waits.append(broken.opens_at - broken.since)
        now = broken.opens_at
        answered = Tally(((part_of(RULE, now), 0, 1),), is_answer=True)
        broken = follow(broken, answered, RULE, CAP, now, 0.0)
    assert max(waits) <= 1.2 * 120


def test_job_that_fails_again_is_no_news_until_it_is_the_try() -> None:
    closed = follow(Breaker(), Tally(again=50), RULE, CAP, NOW, 0.0)
    assert closed.state == "closed"
    trying = half_open(opened(), NOW + 60)
    assert follow(trying, Tally(again=1), RULE, CAP, NOW + 60, 0.0).state == "open"


def test_one_failure_among_many_does_not_end_a_ramp() -> None:
    trying = half_open(opened(), NOW + 60)
    trying = after(trying, NOW + 61, ok=3)
    assert after(trying, NOW + 62, ok=1, failed=1).state == "half-open"
    assert after(trying, NOW + 62, failed=3).state == "open"


def test_success_from_before_is_no_answer_to_a_try() -> None:
    trying = half_open(opened(), NOW + 60)
    early = Tally(((part_of(RULE, NOW + 50), 1000, 0),))
    assert follow(trying, early, RULE, CAP, NOW + 60, 0.0).ramp == 1


def test_jobs_that_a_closed_host_turned_away_open_the_source_until_then_and_are_no_trip() -> None:
    away = Tally(away=10, away_s=77.0, reason="cdn is closed")
    waiting = follow(Breaker(), away, RULE, CAP, NOW, 0.0)
    assert (waiting.state, waiting.opens_at, waiting.trips) == ("open", NOW + 77.0, 0)
    others_are_well = Tally(((part_of(RULE, NOW), 20, 0),), away=5, away_s=77.0, is_well=True)
    assert follow(Breaker(), others_are_well, RULE, CAP, NOW, 0.0).state == "closed"
    one_by_one = Breaker()
    for _ in range(10):
        one_by_one = follow(one_by_one, Tally(away=1, away_s=77.0), RULE, CAP, NOW, 0.0)
    assert one_by_one.state == "open"
    trying = half_open(opened(), NOW + 60)
    put_off = follow(trying, Tally(away=1, away_s=9.0), RULE, CAP, NOW + 60, 0.0)
    assert (put_off.state, put_off.opens_at, put_off.trips) == ("open", NOW + 69.0, trying.trips)


def test_failures_are_excused_while_it_is_open_but_not_for_ever() -> None:
    assert not is_excused(Breaker())
    assert is_excused(opened())
    assert not is_excused(half_open(opened(), NOW + 60))
    assert not is_excused(Breaker("open", trips=EXCUSED_TRIPS))
    assert not is_excused(close(opened(), NOW, ""))


steps = st.lists(
    st.tuples(st.floats(0, 100), st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=40
)


@given(steps, st.floats(0, 0.999), st.integers(1, 64))
def test_whatever_happens_it_is_sound(
    told: list[tuple[float, int, int]], chance: float, cap: int
) -> None:
    breaker, now = Breaker(), NOW
    for later_s, ok, failed in told:
        now += later_s
        was = breaker
        breaker = follow(breaker, seen(now, ok, failed), RULE, cap, now, chance)
        if breaker.state == "open":
            assert breaker.trips > 0
            assert breaker.opens_at - breaker.since <= RULE.longest_s * 1.2
            assert breaker.opened_at <= breaker.since
        if breaker.state == "half-open":
            assert 1 <= breaker.ramp < max(2, cap)
        if was.state == "closed" and breaker.state != "closed":
            assert breaker.state == "open"
            assert failed > 0
        if state_at(was, now) == "open":
            assert breaker == was
        assert len(breaker.buckets) <= 61
        assert all(now - RULE.window_s - 1 <= part <= now for part, _, _ in breaker.buckets)


@given(st.integers(1, 64), st.integers(1, 64), st.floats(0, 1e4))
def test_a_ramp_never_lets_more_pass_than_went_well_twice(
    cap: int, trips: int, wait_s: float
) -> None:
    broken = Breaker("open", NOW, NOW + wait_s, NOW, trips=trips)
    now, passed = NOW + wait_s, 0
    while broken.state != "closed":
        allowed = ramp_at(broken.state, broken.opens_at, broken.ramp, now) or 0
        assert allowed <= 2 * max(passed, 1)
        passed = allowed
        broken = follow(broken, seen(now, allowed), RULE, cap, now, 0.0)


# The gate.

PAGE, CANDIDATE = Head(1, "extract", "page", 50), Head(1, "persist", "candidate", 50)


def lane(state: str, opens_at: float = NOW, ramp: int = 0, running: int = 0) -> Lane:
    limits = LaneLimits(concurrency=CAP)
    facts = BreakerFacts(state, opens_at, ramp)
    return Lane(1, (PAGE,), limits, breaker=facts, running=running)


def test_gate_is_closed_until_its_time_and_then_for_all_but_one() -> None:
    assert decide(lane("open", NOW + 5), NOW) == Closed("breaker", NOW + 5)
    assert decide(lane("open", NOW + 5), NOW + 5) == Allowance(1, 64)
    assert decide(lane("open", NOW + 5, running=1), NOW + 5) == Closed("breaker")
    assert decide(lane("half-open", ramp=4, running=1), NOW) == Allowance(3, 64)
    assert decide(lane("half-open", ramp=4, running=4), NOW) == Closed("breaker")
    assert decide(lane("half-open", ramp=100, running=1), NOW) == Allowance(CAP - 1, 64)
    assert decide(lane("closed", running=1), NOW) == Allowance(CAP - 1, 64)


def test_what_does_not_touch_the_source_is_not_held_back() -> None:
    shut = Lane(1, (PAGE, CANDIDATE), breaker=BreakerFacts("open", NOW + 5, 0))
    assert decide(shut, NOW) == Allowance(0, 64)
    assert first_closed(shut, "candidate", NOW) is None


def test_level_holds_unless_it_is_switched_off() -> None:
    fallen = Lane(1, (PAGE,), LaneLimits(concurrency=8), level=2.7)
    assert concurrency_of(fallen, NOW) == 2
    assert concurrency_of(Lane(1, (PAGE,), LaneLimits(8, adaptive=False), level=2.7), NOW) == 8
    assert concurrency_of(Lane(1, (PAGE,), LaneLimits(concurrency=2), level=50.0), NOW) == 2
