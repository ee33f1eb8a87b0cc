"""Sequences of a stream: whatever order events come in, each goes on once, and what is missing is a gap."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.market.events import Event
from penstock.connectors.market.json_pages import JsonPages
from penstock.connectors.market.keys import MarketKeys, RowKeys
from penstock.connectors.market.moments import moment_ns, written
from penstock.connectors.market.sequences import Gap, Sequencer, missing_of


def event(number: int, at_ns: int | None = None) -> Event:
    return Event(
        symbol="A",
        at_ns=number * 1000 if at_ns is None else at_ns,
        event_type="trade",
        sequence=number,
    )


def passed(
    sequencer: Sequencer, numbers: list[int], now: float = 0.0
) -> tuple[list[int], list[Gap]]:
    events: list[Event] = []
    gaps: list[Gap] = []
    for number in numbers:
        ready, found = sequencer.take(event(number), now)
        events += ready
        gaps += found
    return [each.sequence or 0 for each in events], gaps


def test_events_that_are_out_of_order_are_put_in_order() -> None:
    assert passed(Sequencer("A", reorder=3, last=0), [1, 3, 4, 2, 5]) == ([1, 2, 3, 4, 5], [])


def test_the_first_events_may_be_out_of_order_too() -> None:
    sequencer = Sequencer("A", reorder=3)
    assert passed(sequencer, [9, 7, 8, 10]) == ([7, 8, 9, 10], [])
    assert sequencer.take(event(6), 0.0) == ([], [])


def test_what_does_not_come_is_a_gap_with_its_neighbours_moments() -> None:
    sequencer = Sequencer("A", reorder=2, last=0)
    assert passed(sequencer, [1, 5, 6]) == ([1], [])
    numbers, [gap] = passed(sequencer, [7])
    assert numbers == [5, 6, 7]
    assert gap == Gap("A", 2, 4, 1000, 5000)


def test_one_that_is_missing_is_waited_for_as_long_as_patience_lasts() -> None:
    sequencer = Sequencer("A", patience_s=2.0, last=0)
    passed(sequencer, [1, 3], now=10.0)
    assert sequencer.due(11.9) == ([], [])
    events, [gap] = sequencer.due(12.0)
    assert [each.sequence for each in events] == [3]
    assert (gap.first, gap.last) == (2, 2)


def test_one_that_comes_after_its_gap_goes_on_once() -> None:
    sequencer = Sequencer("A", reorder=0, last=0)
    assert passed(sequencer, [1, 4, 2, 2, 3, 3])[0] == [1, 4, 2, 3]
    assert sequencer.duplicates == 2


def test_a_sequence_that_begins_again_is_no_row_of_duplicates() -> None:
    sequencer = Sequencer("A", last=1000, last_ns=5_000)
    numbers = [sequencer.take(event(n, 6_000 + n), 0.0)[0] for n in (1, 2, 3)]
    assert [[each.sequence for each in found] for found in numbers] == [[1], [2], [3]]
    assert (sequencer.restarts, sequencer.duplicates, sequencer.last) == (1, 0, 3)
    assert sequencer.take(event(2, 6_002), 0.0) == ([], [])


@given(
    st.integers(1, 60),
    st.integers(0, 8),
    st.sets(st.integers(1, 60), max_size=12),
    st.integers(0, 2**32),
)
def test_every_event_goes_on_once_or_is_in_a_gap(
    length: int, reorder: int, lost: set[int], seed: int
) -> None:
    rng = random.Random(seed)
    numbers = [n for n in range(1, length + 1) if n not in lost]
    numbers += rng.sample(numbers, len(numbers) // 4)
    numbers.sort(key=lambda number: number + rng.uniform(0, reorder))
    sequencer = Sequencer("A", reorder=reorder, last=0)
    seen, gaps = passed(sequencer, numbers)
    late, more = sequencer.due(1e9)
    seen += [each.sequence or 0 for each in late]
    assert len(set(seen)) == len(seen)
    assert set(seen) == set(numbers)
    missing = {n for gap in [*gaps, *more] for n in range(gap.first, gap.last + 1)}
    assert missing | set(seen) >= set(range(1, max(numbers, default=0) + 1))


def test_what_a_history_lacks_of_a_gap_is_told_as_ranges() -> None:
    assert missing_of([[3, 6], [9, 9]], [2, 4, 5, 9]) == [(3, 3), (6, 6)]
    assert missing_of([[3, 6]], [6, 5, 4, 3]) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1_793_577_600, "2026-11-02T00:00:00Z"),
        (1_793_577_600.5, "2026-11-02T00:00:00.500000000Z"),
        (1_793_577_600_123, "2026-11-02T00:00:00.123000000Z"),
        (1_793_577_600_123_456_789, "2026-11-02T00:00:00.123456789Z"),
        ("1793577600", "2026-11-02T00:00:00Z"),
        ("2026-11-02", "2026-11-02T00:00:00Z"),
        ("20261102", "2026-11-02T00:00:00Z"),
        ("2026-11-02T01:00:00.123456789+01:00", "2026-11-02T00:00:00.123456789Z"),
        ("2026-11-02 00:00:00", "2026-11-02T00:00:00Z"),
    ],
)
def test_times_are_read_as_providers_write_them(value: object, text: str) -> None:
    assert written(moment_ns(value), is_exact=False) == text


@pytest.mark.parametrize(
    "value", [None, True, "", "soon", "2026-13-01", -1, 10**30, float("inf"), []]
)
def test_what_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"no time|month"):
        moment_ns(value)


def test_rows_that_are_lists_have_their_usual_order_or_the_places_that_are_named() -> None:
    body = b"[[1793577600, 1, 4, 0.5, 2, 900]]"
    keys = MarketKeys(url="https://x.example/{symbol}", start="2026-01-01")
    [usual] = JsonPages(keys, "s").parse(body, "A", "").events
    assert usual.values == {"open": 1, "high": 4, "low": 0.5, "close": 2, "volume": 900}
    places = RowKeys(fields={"timestamp": "0", "close": "1"})
    named = MarketKeys(url="https://x.example/{symbol}", start="2026-01-01", format=places)
    [own] = JsonPages(named, "s").parse(body, "A", "").events
    assert (own.values, own.at_ns) == ({"close": 1}, usual.at_ns)
