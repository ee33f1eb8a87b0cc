"""Rates: every request has a place of its own in time, and no window of time has too many."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.gates.rates import LONGEST_WAIT_S, RateDecision, RateRequest, give_place

NOW = 1_800_000_000.0
# What is lost of a second in a number of this size.
DUST_S = 1e-6

rates = st.floats(1 / 86_400, 1_000.0)


@dataclass
class Book:
    """What a store would remember, and when each request that was given a place goes out."""

    next_at: dict[str, float] = field(default_factory=dict)
    sent_at: list[float] = field(default_factory=list)

    def ask(self, now: float, *wants: RateRequest) -> list[RateDecision]:
        verdicts = [give_place(want, self.next_at, now) for want in wants]
        self.sent_at += [now + verdict.wait_s for verdict in verdicts if not verdict.gate]
        return verdicts


def waits(verdicts: list[RateDecision]) -> list[tuple[float, str]]:
    return [(round(verdict.wait_s, 6), verdict.gate) for verdict in verdicts]


def most_in_a_window(times: list[float], window_s: float) -> int:
    times = sorted(times)
    return max((bisect_right(times, at + window_s) - i for i, at in enumerate(times)), default=0)


def test_requests_are_spread_evenly_and_idle_time_is_not_saved_up() -> None:
    book, want = Book(), RateRequest("acme.com", 2.0)
    assert waits(book.ask(NOW, *[want] * 4)) == [(0, ""), (0.5, ""), (1, ""), (1.5, "")]
    assert waits(book.ask(NOW + 400, want, want)) == [(0, ""), (0.5, "")]


def test_whoever_would_wait_too_long_is_told_when_to_come_back_and_takes_nothing() -> None:
    book, want = Book(), RateRequest("acme.com", 0.5)
    verdicts = book.ask(NOW, *[want] * 5)
    assert waits(verdicts) == [(0, ""), (2, ""), (4, ""), (6, "rate"), (6, "rate")]
    assert waits(book.ask(NOW + 1.5, want, want)) == [(4.5, ""), (6.5, "rate")]


def test_each_key_has_its_own_places() -> None:
    book = Book()
    asked = [("a", 1.0), ("b", 1.0), ("a", 1.0), ("b", 4.0), ("b", 4.0)]
    wants = [RateRequest(key, rate_per_s) for key, rate_per_s in asked]
    assert waits(book.ask(NOW, *wants)) == [(0, ""), (0, ""), (1, ""), (1, ""), (1.25, "")]


def test_a_changed_rate_holds_from_the_next_place_on() -> None:
    book = Book()
    book.ask(NOW, RateRequest("a", 1.0))
    assert waits(book.ask(NOW, *[RateRequest("a", 10.0)] * 3)) == [(1, ""), (1.1, ""), (1.2, "")]
    book.ask(NOW + 9, RateRequest("a", 1 / 3600))
    # The next place was an hour off, at a rate that is no longer wished for.
    assert waits(book.ask(NOW + 10, RateRequest("a", 10.0))) == [(LONGEST_WAIT_S + 0.1, "rate")]
    assert waits(book.ask(NOW + 16, RateRequest("a", 10.0))) == [(0, "")]


@given(rates, st.floats(-1e6, 1e6))
def test_a_clock_that_was_set_costs_seconds_and_not_hours(rate: float, step_s: float) -> None:
    book, want = Book(), RateRequest("a", rate)
    book.ask(NOW, want)
    [verdict] = book.ask(NOW + step_s, want)
    assert verdict.wait_s <= LONGEST_WAIT_S + 1 / rate + DUST_S
    if verdict.gate:
        [verdict] = book.ask(NOW + step_s + verdict.wait_s, want)
    assert not verdict.gate


@given(
    rates,
    st.lists(st.tuples(st.floats(0.0, 20.0), st.integers(1, 20)), max_size=40),
)
def test_no_window_of_time_has_more_requests_than_the_rate_allows(
    rate: float, arrivals: list[tuple[float, int]]
) -> None:
    book, now = Book(), NOW
    for passed_s, count in arrivals:
        now += passed_s
        for verdict in book.ask(now, *[RateRequest("a", rate)] * count):
            if verdict.gate:
                assert LONGEST_WAIT_S < verdict.wait_s <= LONGEST_WAIT_S + 1 / rate + DUST_S
            else:
                assert 0.0 <= verdict.wait_s <= LONGEST_WAIT_S
    assert book.sent_at == sorted(book.sent_at), "first come, first served"
    assert all(b - a >= 1 / rate - DUST_S for a, b in pairwise(book.sent_at))
    for intervals in (1, 3, 10):
        window_s = intervals / rate - DUST_S * intervals
        assert most_in_a_window(book.sent_at, window_s) <= intervals


@given(st.lists(st.tuples(st.sampled_from("abc"), rates), max_size=30), st.floats(0.0, 10.0))
def test_a_batch_is_the_same_as_one_after_another(
    wanted: list[tuple[str, float]], ahead_s: float
) -> None:
    wants = [RateRequest(key, rate) for key, rate in wanted]
    at_once, in_turn = Book({"a": NOW + ahead_s}), Book({"a": NOW + ahead_s})
    together = at_once.ask(NOW, *wants)
    assert together == [verdict for want in wants for verdict in in_turn.ask(NOW, want)]
    assert at_once == in_turn


@given(rates, st.integers(1, 50))
def test_a_busy_source_loses_none_of_its_rate(rate: float, count: int) -> None:
    """Whoever comes back when told to finds the next place, and no place is left empty between two."""
    book, now = Book(), NOW
    for _ in range(count):
        [verdict] = book.ask(now, RateRequest("a", rate))
        now += verdict.wait_s if verdict.gate else 0.0
        if verdict.gate:
            [verdict] = book.ask(now, RateRequest("a", rate))
        assert not verdict.gate
    gaps = [b - a for a, b in pairwise(book.sent_at)]
    assert gaps == pytest.approx([1 / rate] * (count - 1), abs=DUST_S)
