"""Adaptive concurrency: falls on errors and latency, recovers, never below one or above the cap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.gates.adaptive import LEAST_ROUND, AdaptiveLevel, RoundResults, feel

CAP = 10


def a_round(ok: int = 20, failed: int = 0, each_s: float = 0.2) -> RoundResults:
    return RoundResults(ok, failed, {"extract": (ok, ok * each_s)} if ok else {})


def test_falls_when_one_in_ten_fails_and_comes_back_one_by_one() -> None:
    pulse = AdaptiveLevel(float(CAP))
    assert feel(pulse, a_round(17, 3), CAP, 0.0) == 7.0
    assert feel(pulse, a_round(17, 3), CAP, 0.0) == 7.0 * 0.7
    levels = [feel(pulse, a_round(), CAP, 0.0) for _ in range(10)]
    assert levels == sorted(levels)
    assert levels[-1] == CAP


def test_a_few_failures_are_life() -> None:
    assert feel(AdaptiveLevel(5.0), a_round(19, 1), CAP, 0.0) == 6.0


def test_falls_when_pages_take_far_longer_than_usual() -> None:
    pulse = AdaptiveLevel(float(CAP))
    for _ in range(5):
        feel(pulse, a_round(each_s=0.5), CAP, 0.0)
    assert feel(pulse, a_round(each_s=2.5), CAP, 0.0) == 7.0


def test_gets_used_to_a_source_that_has_become_slow() -> None:
    pulse = AdaptiveLevel(float(CAP))
    for _ in range(5):
        feel(pulse, a_round(each_s=0.5), CAP, 0.0)
    levels = [feel(pulse, a_round(each_s=2.5), CAP, 0.0) for _ in range(40)]
    assert min(levels) < 7
    assert levels[-1] == CAP


def test_a_busy_worker_is_not_taken_for_a_slow_source() -> None:
    """No-op jobs that waited for each other take fifty times as long as ones that did not."""
    pulse = AdaptiveLevel(float(CAP))
    for each_s in (0.001, 0.05, 0.001, 0.05):
        assert feel(pulse, a_round(each_s=each_s), CAP, 0.0) == CAP


def test_stages_are_compared_with_themselves() -> None:
    pulse = AdaptiveLevel(float(CAP))
    both = RoundResults(20, 0, {"list": (10, 1.0), "detail": (10, 100.0)})
    for _ in range(5):
        feel(pulse, both, CAP, 0.0)
    assert feel(pulse, RoundResults(20, 0, {"detail": (20, 200.0)}), CAP, 0.0) == CAP


def test_waits_until_a_round_is_over() -> None:
    pulse = AdaptiveLevel(float(CAP))
    assert feel(pulse, RoundResults(0, LEAST_ROUND - 1), CAP, 0.0) == CAP
    assert feel(pulse, RoundResults(0, LEAST_ROUND), CAP, 0.0) < CAP


def test_what_was_seen_long_ago_is_forgotten() -> None:
    pulse = AdaptiveLevel(float(CAP))
    feel(pulse, RoundResults(0, LEAST_ROUND - 1), CAP, 0.0)
    assert feel(pulse, RoundResults(1, 0), CAP, 100.0) == CAP
    assert feel(pulse, RoundResults(LEAST_ROUND + 2, 0), CAP, 100.0) == CAP


rounds = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 200), st.floats(0, 60)), max_size=60
)


@given(st.floats(0, 1000), rounds, st.integers(1, 64))
def test_is_never_below_one_and_never_above_the_cap(
    level: float, told: list[tuple[int, int, float]], cap: int
) -> None:
    pulse = AdaptiveLevel(level)
    for ok, failed, each_s in told:
        assert 1.0 <= feel(pulse, a_round(ok, failed, each_s), cap, 0.0) <= cap
