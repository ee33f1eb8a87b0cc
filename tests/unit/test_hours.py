"""Windows: open by the clock on the wall, on days of 23, 24 and 25 hours alike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.gates.decide import decide, gates_before
from penstock.gates.lane import Allowance, Closed, Head, Lane, LaneLimits
from penstock.settings.opening_hours import (
    OpeningHours,
    WeeklyWindow,
    parse_window,
    window_opens_at,
)

PARIS = ZoneInfo("Europe/Paris")


def windows(*texts: str, zone: str = "Europe/Paris") -> OpeningHours:
    return OpeningHours(tuple(parse_window(text) for text in texts), zone)


def at(text: str, zone: ZoneInfo = PARIS) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def test_window_over_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    night = windows("fri 22:00-06:00")
    assert window_opens_at(night, at("2026-11-13 21:59")) == at("2026-11-13 22:00")
    assert window_opens_at(night, at("2026-11-13 22:00")) is None
    assert window_opens_at(night, at("2026-11-14 05:59:59")) is None
    assert window_opens_at(night, at("2026-11-14 06:00")) == at("2026-11-20 22:00")


def test_several_windows_are_open_when_any_is() -> None:
    hours = windows("22:00-06:00", "sat-sun 00:00-24:00")
    assert window_opens_at(hours, at("2026-11-14 12:00")) is None
    assert window_opens_at(hours, at("2026-11-16 12:00")) == at("2026-11-16 22:00")


def test_clock_that_is_put_forward_opens_what_begins_in_the_missing_hour_when_it_is_over() -> None:
    early = windows("02:30-04:00")
    missing = at("2026-03-29 03:00")
    assert window_opens_at(early, at("2026-03-29 01:59")) == missing
    assert window_opens_at(early, missing) is None


def test_hour_that_comes_twice_is_open_twice() -> None:
    early = windows("02:00-03:00")
    first = datetime(2026, 10, 25, 2, 30, tzinfo=PARIS)
    assert window_opens_at(early, first.timestamp()) is None
    assert window_opens_at(early, first.replace(fold=1).timestamp()) is None
    assert window_opens_at(early, at("2026-10-25 03:00")) == at("2026-10-26 02:00")


@st.composite
def some_windows(draw: st.DrawFn) -> OpeningHours:
    minutes = st.integers(0, 24 * 4 - 1).map(lambda quarter: quarter * 15)
    found = []
    for _ in range(draw(st.integers(1, 3))):
        start, end = draw(minutes), draw(minutes) + 15
        days = draw(st.sets(st.integers(0, 6), min_size=1))
        if start != end:
            found.append(WeeklyWindow(tuple(sorted(days)), start, end))
    zone = draw(
        st.sampled_from(
            ["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Beirut"]
        )
    )
    return OpeningHours(tuple(found) or (WeeklyWindow((0,), 0, 60),), zone)


@settings(max_examples=60, deadline=None)
@given(some_windows(), st.integers(0, 366 * 24 * 4))
def test_what_is_said_to_open_then_opens_then_and_not_before(
    hours: OpeningHours, quarter: int
) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC).timestamp() + quarter * 900
    opens_at = window_opens_at(hours, now)
    if opens_at is None:
        return
    assert opens_at > now
    assert window_opens_at(hours, opens_at) is None
    step = now
    while step < opens_at:
        assert window_opens_at(hours, step) == opens_at
        step += 900


def test_window_holds_back_what_touches_the_source_and_nothing_else() -> None:
    limits = LaneLimits(windows=windows("22:00-06:00"))
    noon = at("2026-11-13 12:00")
    page, candidate = Head(1, "extract", "page", 5), Head(1, "persist", "candidate", 5)
    assert decide(Lane(1, (page,), limits), noon) == Closed("window", at("2026-11-13 22:00"))
    assert decide(Lane(1, (page, candidate), limits), noon) == Allowance(0, 64)
    assert decide(Lane(1, (page,), limits), at("2026-11-13 23:00")) == Allowance(4, 64)
    names = [name for name, _ in gates_before(Lane(1, (page,), limits), "page", noon)]
    assert names.index("paused") < names.index("window") < names.index("breaker")


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("22:00-06:00", WeeklyWindow(tuple(range(7)), 1320, 360)),
        ("sat-sun 00:00-24:00", WeeklyWindow((5, 6), 0, 1440)),
        ("fri-mon 9:00 - 17:30", WeeklyWindow((0, 4, 5, 6), 540, 1050)),
        ("MON,wed 09:00-10:00", WeeklyWindow((0, 2), 540, 600)),
    ],
)
def test_windows_are_read_as_they_are_written(text: str, window: WeeklyWindow) -> None:
    assert parse_window(text) == window


@pytest.mark.parametrize(
    "text",
    [
        "",
        "22-06",
        "25:00-26:00",
        "10:60-11:00",
        "10:00-10:00",
        "24:00-01:00",
        "mun 1:00-2:00",
        "1:00-2:00 mon",
    ],
)
def test_what_is_no_window_is_refused_in_words(text: str) -> None:
    with pytest.raises(ConfigError, match="window"):
        parse_window(text)


def test_a_week_is_searched_whole() -> None:
    weekly = windows("mon 00:00-00:15")
    now = at("2026-11-16 00:15")
    assert window_opens_at(weekly, now) == now + timedelta(days=7, minutes=-15).total_seconds()
