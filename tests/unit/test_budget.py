"""Budgets, in numbers: where periods begin, what is left, what may be taken, what is said."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.gates.admission import Book, admit, reservations, spendings, takes
from penstock.gates.budget import (
    BudgetUsage,
    exhausted_at,
    key_of,
    level_of,
    next_reset,
    open_account,
    period_of,
    used_up,
)
from penstock.gates.project_terms import HostLimit, Terms
from penstock.gates.rates import LONGEST_WAIT_S, NOTHING_SENT, RateRequest, Sent
from penstock.settings.budget import Bound

# Midnights that are skipped, that come twice, half hours, and a day that never was (Apia).
ZONES = (
    "UTC", "Europe/Paris", "America/New_York", "America/Sao_Paulo", "America/Havana", "Asia/Beirut",
    "Africa/Cairo", "America/Santiago", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia",
    "Asia/Gaza", "America/Asuncion", "Atlantic/Azores",
)  # fmt: skip
FIRST = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
LAST = datetime(2037, 1, 1, tzinfo=UTC).timestamp()
moments = st.floats(FIRST, LAST)
zones = st.sampled_from(ZONES)


@settings(max_examples=500, deadline=None)
@given(moments, zones, st.sampled_from(["day", "month"]))
def test_every_moment_is_in_one_period_and_periods_follow_each_other(
    now: float, zone: str, period: str
) -> None:
    began, ends = period_of(period, zone, now)
    assert ends is not None
    assert began <= now < ends
    assert period_of(period, zone, began) == (began, ends)
    assert period_of(period, zone, ends)[0] == ends
    assert period_of(period, zone, ends - 0.001)[0] == began
    longest_s = 49 * 3600 if period == "day" else 32 * 86_400
    assert 0 < ends - began <= longest_s


@settings(max_examples=300, deadline=None)
@given(st.dates(date(2000, 1, 2), date(2036, 12, 30)), zones)
def test_day_begins_where_the_calendar_turns(day: date, zone: str) -> None:
    """Seen from a second before and a second after: at no other time does the date go forward."""
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=ZoneInfo(zone)).timestamp()
    began, _ = period_of("day", zone, noon)
    before = datetime.fromtimestamp(began - 1, ZoneInfo(zone)).date()
    after = datetime.fromtimestamp(began + 1, ZoneInfo(zone)).date()
    assert before < after


@pytest.mark.parametrize(
    ("zone", "moment", "began", "hours"),
    [
        ("Europe/Paris", "2026-03-29T12:00", "2026-03-28T23:00", 23),
        ("Europe/Paris", "2026-10-25T12:00", "2026-10-24T22:00", 25),
        # In Havana the clock goes from 0:00 to 1:00 and back from 1:00 to 0:00.
        ("America/Havana", "2026-03-08T12:00", "2026-03-08T05:00", 23),
        ("America/Havana", "2026-11-01T12:00", "2026-11-01T04:00", 25),
        # In Beirut the day that has no midnight begins at one o'clock.
        ("Asia/Beirut", "2025-03-30T12:00", "2025-03-29T22:00", 23),
        # Apia went from the 29th to the 31st.
        ("Pacific/Apia", "2011-12-30T09:00", "2011-12-29T10:00", 24),
        ("Pacific/Apia", "2011-12-30T11:00", "2011-12-30T10:00", 24),
    ],
)
def test_days_with_a_changed_clock(zone: str, moment: str, began: str, hours: int) -> None:
    def at(text: str) -> float:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()

    assert period_of("day", zone, at(moment)) == (at(began), at(began) + hours * 3600)


def test_months_are_as_long_as_they_are() -> None:
    zone = ZoneInfo("America/New_York")
    for month, days in ((1, 31), (2, 28), (11, 30), (12, 31)):
        now = datetime(2026, month, 14, tzinfo=zone)
        began, ends = period_of("month", zone.key, now.timestamp())
        assert datetime.fromtimestamp(began, zone) == datetime(2026, month, 1, tzinfo=zone)
        last = datetime.fromtimestamp(began, zone).date() + timedelta(days=days)
        assert ends is not None
        assert datetime.fromtimestamp(ends, zone).date() == last


def test_a_run_is_one_period() -> None:
    assert period_of("run", "UTC", 1000.0) == (1000.0, None)
    assert next_reset([Bound("run:1", "requests", "run", 5)], 1000.0) == float("inf")


def an_account(measure: str, amount: float, used: float = 0.0, held: float = 0.0) -> BudgetUsage:
    account = open_account(Bound("source:shop", measure, "day", amount), 1_800_000_000.0)
    account.used, account.held = used, held
    return account


@pytest.mark.parametrize(
    ("measure", "used", "held", "takes", "verdict"),
    [
        ("requests", 0, 0, 1, ""),
        ("requests", 99, 0, 1, ""),
        ("requests", 100, 0, 1, "budget"),
        ("money", 99.5, 0, 0.5, ""),
        ("money", 99.6, 0, 0.5, "budget"),
        ("money", 100, 0, 0, "budget"),
        ("bytes", 0, 0, 100, ""),
        ("bytes", 0, 50, 50, ""),
        ("bytes", 0, 50, 51, "turn"),
        # Less is left than it may take, and nobody else has anything: one is let through.
        ("bytes", 99, 0, 5000, ""),
        ("bytes", 99, 5000, 5000, "turn"),
        ("bytes", 100, 0, 1, "budget"),
        ("bytes", 120, 5000, 1, "budget"),
        ("seconds", 99.9, 0, 20, ""),
    ],
)
def test_what_may_be_taken(
    measure: str, used: float, held: float, takes: float, verdict: str
) -> None:
    assert an_account(measure, 100.0, used, held).verdict(takes) == verdict


def test_a_hundred_cents_are_a_dollar() -> None:
    account = an_account("money", 1.0)
    for _ in range(100):
        assert account.verdict(0.01) == ""
        account.used += 0.01
    assert account.verdict(0.01) == "budget"
    assert account.crossed() == 100


def test_levels_are_said_once_each_and_the_highest_only() -> None:
    account = an_account("requests", 100.0)
    said = []
    for used in range(101):
        account.used = float(used)
        said.append((used, account.crossed()))
    assert [pair for pair in said if pair[1]] == [(80, 80), (95, 95), (100, 100)]
    assert [level_of(used, 10) for used in (7.99, 8, 9.5, 10, 99)] == [0, 80, 95, 100, 100]
    account = an_account("requests", 4.0, used=4)
    assert (account.crossed(), account.crossed()) == (100, None)


def test_bound_that_is_raised_may_warn_again_and_one_that_is_lowered_stops() -> None:
    account = an_account("requests", 100.0, used=100)
    assert account.crossed() == 100
    account.bind(Bound("source:shop", "requests", "day", 200.0))
    assert (account.verdict(1), account.crossed(), account.warned) == ("", None, 0)
    account.bind(Bound("source:shop", "requests", "day", 50.0))
    assert account.verdict(1) == "budget"


def test_forecast_goes_by_what_was_used_so_far() -> None:
    account = an_account("requests", 100.0, used=25)
    account.period_at, account.resets_at = 0.0, 86_400.0
    assert exhausted_at(account, 10_000.0) == 40_000.0
    assert exhausted_at(account, 40_000.0) is None, "it begins anew before"
    account.used = 0
    assert exhausted_at(account, 40_000.0) is None
    account.used = 100
    assert exhausted_at(account, 40_000.0) == 40_000.0
    assert an_account("requests", 1).left == 1


def test_words_for_people() -> None:
    cases = {
        Bound("source:acme.com", "requests", "day", 5000): "5,000 requests a day of acme.com",
        Bound("project", "money", "month", 5): "5.00 of money a month of the project",
        Bound("run:12", "seconds", "run", 7200): "7,200 seconds of run 12",
        Bound("source:a", "bytes", "day", 1e9): "1,000,000,000 bytes a day of a",
    }
    for bound, words in cases.items():
        assert used_up(bound) == f"the budget of {words} is exhausted"


def test_holdings_name_their_budget() -> None:
    bound = Bound("source:acme.com:8080/a:b", "bytes", "day", 1)
    assert key_of(bound.holding) == bound.key
    assert key_of("host:acme.com") is None


# Admission.

DAY = Bound("source:shop", "requests", "day", 10)
BYTES = Bound("project", "bytes", "day", 1000)
HOST = HostLimit("api.example", 2, 1.0)


def a_want(*bounds: Bound, host: HostLimit | None = None, rate: float | None = None) -> RateRequest:
    return RateRequest("shop", rate, "api.example", 1, 300, 20.0, Terms(bounds, 0.25, host))


def a_book(*accounts: BudgetUsage, **held: float) -> Book:
    return Book({}, {account.bound.key: account for account in accounts}, dict(held))


def test_all_that_a_request_needs_is_taken_or_nothing() -> None:
    requests, sizes = open_account(DAY, 0.0), open_account(BYTES, 0.0)
    sizes.used = 1000
    book = a_book(requests, sizes)
    [verdict] = admit([a_want(DAY, BYTES, host=HOST)], book, 0.0)
    assert verdict.gate == "budget"
    assert "bytes" in verdict.reason
    assert (requests.used, book.given, book.next_at) == (0, {}, {})

    sizes.used = 0
    assert [v.gate for v in admit([a_want(DAY, BYTES, host=HOST)] * 3, book, 0.0)] == [
        "",
        "",
        "slots",
    ]
    assert requests.used == 2
    # Both are put down with the run too, should their worker die.
    assert book.given == {BYTES.holding: 600.0, "host:api.example": 2.0, "usage:1": 2.0}


def test_place_in_time_that_is_too_far_takes_no_budget() -> None:
    requests = open_account(DAY, 0.0)
    book = a_book(requests)
    book.next_at["shop"] = 100.0
    [verdict] = admit([a_want(DAY, rate=0.1)], book, 95.0 - LONGEST_WAIT_S)
    assert (verdict.gate, requests.used) == ("rate", 0)


def test_place_of_a_host_is_waited_for() -> None:
    slow = HostLimit("api.example", None, 0.5)
    book = a_book()
    wants = [a_want(host=slow)] * 5
    assert [(v.wait_s, v.gate) for v in admit(wants, book, 0.0)] == [
        (0, ""), (2, ""), (4, ""), (1, "pace"), (1, "pace"),
    ]  # fmt: skip


def test_a_request_gives_back_what_it_reserved_and_says_what_it_used() -> None:
    want = a_want(
        DAY, BYTES, Bound("run:1", "seconds", "run", 60), Bound("project", "money", "day", 5)
    )
    assert [takes(want, bound) for bound in want.terms.bounds] == [1, 300, 20, 0.25]
    assert reservations(want) == {BYTES.holding: 300.0, "budget:seconds:run:run:1": 20.0}
    used = spendings(want, Sent(True, 120, 1.5))
    assert [(b.measure, amount) for b, amount in used] == [("bytes", 120), ("seconds", 1.5)]
    # One that never went out takes back what was counted before it.
    void = spendings(want, NOTHING_SENT)
    assert [(b.measure, amount) for b, amount in void] == [("requests", -1), ("money", -0.25)]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 7)), max_size=80),
    st.integers(1, 2000),
)
def test_bytes_never_pass_their_bound_by_more_than_one_request(
    turns: list[tuple[int, int]], amount: int
) -> None:
    """Requests begin and end in any order; each brings no more than it may."""
    bound = Bound("project", "bytes", "day", float(amount))
    account = open_account(bound, 0.0)
    under_way: list[RateRequest] = []
    for brings, ends in turns:
        want = a_want(bound)
        [verdict] = admit(
            [want], Book({}, {bound.key: account}, {bound.holding: account.held}), 0.0
        )
        if not verdict.gate:
            under_way.append(want)
        if under_way and ends % 2:
            under_way.pop(ends % len(under_way))
            account.held -= 300
            account.used += brings
        assert account.used + account.held <= amount + 300
        assert account.used < amount + 300
