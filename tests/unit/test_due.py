"""What becomes of ticks that have come, the hours in which they may start, and how they are remembered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.schedules import Every, schedule_from
from penstock.schedules.definition import changes, definition_of, policy_words, settings_of
from penstock.schedules.due import GRACE_S, Due, Missed, Ticking, is_late, what_is_due
from penstock.schedules.start_hours import NEVER, slot_opens_at
from penstock.settings import ScheduleSettings
from penstock.settings.opening_hours import WeeklyWindow, parse_window
from penstock.settings.values import NearSettings, SessionSettings

HOURLY = Every(3600.0)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


# Missed ticks.


def test_tick_that_is_due_alone_fires_however_late_it_is() -> None:
    assert what_is_due(HOURLY, "once", 0.0, 0.0) == Due((), 0.0, 3600.0)
    assert what_is_due(HOURLY, "once", 0.0, 3599.0) == Due((), 0.0, 3600.0)


def test_once_fires_the_last_and_passes_those_before_it() -> None:
    assert what_is_due(HOURLY, "once", 0.0, 7300.0) == Due((0.0, 3600.0), 7200.0, 10800.0)


def test_skip_fires_only_what_is_not_past() -> None:
    assert what_is_due(HOURLY, "skip", 0.0, GRACE_S) == Due((), 0.0, 3600.0)
    assert what_is_due(HOURLY, "skip", 0.0, GRACE_S + 1) == Due((0.0,), None, 3600.0)
    assert what_is_due(HOURLY, "skip", 0.0, 3601.0) == Due((0.0,), 3600.0, 7200.0)


def test_all_fires_one_after_the_other() -> None:
    assert what_is_due(HOURLY, "all", 0.0, 1e6) == Due((), 0.0, 3600.0)


def test_more_than_the_limit_are_passed_in_several_goes() -> None:
    assert what_is_due(HOURLY, "once", 0.0, 36000.0, limit=2) == Due((0.0, 3600.0), None, 7200.0)


@given(
    st.sampled_from(["once", "skip"]),
    st.floats(1.0, 1e6),
    st.floats(0, 1e9),
    st.floats(0, 300),
)
def test_every_tick_up_to_now_is_passed_or_fired_once(
    missed: Missed, every_s: float, first: float, away: float
) -> None:
    rule = Ticking(Every(every_s))
    first = rule.next_due(first) or 0.0
    now, seen, due = first + away * every_s, [], Due((), None, first)
    while due.next_due_at is not None and due.next_due_at <= now:
        due = what_is_due(rule, missed, due.next_due_at, now, limit=50)
        seen += [*due.passed, *([due.fires] if due.fires is not None else [])]
    expected, tick = [], first
    while tick <= now:
        expected.append(tick)
        tick = rule.next_due(tick) or NEVER
    assert seen == expected


@given(st.floats(1e9, 4e9), st.floats(0.0, 1.0), st.floats(1.0, 1e5))
def test_ticks_are_whole_milliseconds_later_than_asked_and_never_early(
    after: float, jitter: float, every_s: float
) -> None:
    plain = Every(every_s, jitter * every_s, "k")
    due, exact = Ticking(plain).next_due(after), plain.next_due(after)
    assert due is not None
    assert exact is not None
    assert due > after
    assert due >= exact - 1e-6
    assert due == round(due, 3)


def test_late_is_what_nobody_can_have_been_there_for() -> None:
    assert not is_late(0.0, GRACE_S)
    assert is_late(0.0, GRACE_S + 0.1)


# Hours.


def hours(*windows: str, blackouts: tuple[str, ...] = (), zone: str = "UTC") -> ScheduleSettings:
    return ScheduleSettings(
        "every",
        every_s=60.0,
        windows=tuple(parse_window(text) for text in windows),
        blackouts=tuple(parse_window(text) for text in blackouts),
        timezone=zone,
    )


def test_without_hours_it_may_always_start() -> None:
    assert slot_opens_at(ScheduleSettings("every", every_s=60.0), 0.0) is None


@pytest.mark.parametrize(
    ("now", "opens"),
    [
        ("2026-11-13 21:59", None),
        ("2026-11-13 22:00", "2026-11-14 06:00"),
        ("2026-11-14 20:00", "2026-11-15 07:00"),
        ("2026-11-15 06:30", "2026-11-15 07:00"),
        ("2026-11-15 07:00", None),
    ],
)
def test_blackouts_are_taken_out_of_windows(now: str, opens: str | None) -> None:
    # Saturday is the 14th, Sunday the 15th.
    settings = hours("06:00-22:00", blackouts=("sat 20:00-03:00", "sun 05:00-07:00"))
    assert slot_opens_at(settings, at(now)) == (None if opens is None else at(opens))


def test_blackouts_alone_leave_the_rest_of_the_week() -> None:
    settings = hours(blackouts=("mon-fri 09:00-17:00",), zone="Europe/Paris")
    assert slot_opens_at(settings, at("2026-11-16 07:59")) is None
    assert slot_opens_at(settings, at("2026-11-16 08:00")) == at("2026-11-16 16:00")


def test_windows_that_are_blacked_out_never_open() -> None:
    assert slot_opens_at(hours("10:00-12:00", blackouts=("00:00-24:00",)), 0.0) == NEVER


@given(st.integers(0, 7 * 1440 * 4))
def test_moment_that_is_answered_is_one_at_which_it_may_start(minute: int) -> None:
    settings = hours("22:00-06:00", "sat 10:00-12:00", blackouts=("01:00-02:00", "sun 23:30-00:30"))
    now = at("2026-10-01 00:00") + minute * 60.0
    opens_at = slot_opens_at(settings, now)
    if opens_at is not None:
        assert opens_at > now
        assert slot_opens_at(settings, opens_at) is None
        assert slot_opens_at(settings, opens_at - 60.0) is not None


def test_during_asks_the_calendar() -> None:
    pytest.importorskip("exchange_calendars")
    shared: dict[str, Any] = {"every_s": 60.0, "calendar": "XNYS"}
    during = ScheduleSettings("every", during="in-session", **shared)
    outside = ScheduleSettings("every", during="out-of-session", **shared)
    # Friday, before, in and after the session of New York (14:30 to 21:00 UTC in winter).
    assert slot_opens_at(during, at("2026-11-13 12:00")) == at("2026-11-13 14:30")
    assert slot_opens_at(during, at("2026-11-13 15:00")) is None
    assert slot_opens_at(during, at("2026-11-13 21:00")) == at("2026-11-16 14:30")
    assert slot_opens_at(outside, at("2026-11-13 12:00")) is None
    assert slot_opens_at(outside, at("2026-11-13 15:00")) == at("2026-11-13 21:00")


# Definitions.

SETTINGS = [
    ScheduleSettings("every", every_s=60.0, jitter_s=5.0, near=NearSettings(600.0, 5.0)),
    ScheduleSettings("cron", cron="0 2 * * *", timezone="Europe/Paris", name="nightly"),
    ScheduleSettings("cadence", cadence="auto", mode="suggest"),
    ScheduleSettings("session", session=SessionSettings("XNYS", "close", 900.0), calendar="XNYS"),
    ScheduleSettings("signal", signals=("a", "b"), overlap="queue"),
    ScheduleSettings("every", every_s=1.0, windows=(WeeklyWindow((0, 6), 60, 120),), missed="all"),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: each.kind)
def test_definition_is_read_back_as_it_was(settings: ScheduleSettings) -> None:
    assert settings_of(definition_of(settings), settings.name) == settings


def test_definitions_are_equal_for_equal_schedules_only() -> None:
    found = {definition_of(each) for each in SETTINGS}
    assert len(found) == len(SETTINGS)
    assert (
        definition_of(ScheduleSettings("every", every_s=60.0)) == '{"every_s":60.0,"kind":"every"}'
    )


def test_changes_are_told_by_the_keys_of_the_file() -> None:
    before = definition_of(ScheduleSettings("every", every_s=60.0))
    after = definition_of(ScheduleSettings("every", every_s=90.0, run_kind="incremental"))
    assert changes(before, after) == [("every", 60.0, 90.0), ("kind", None, "incremental")]
    assert changes(before, before) == []


def test_words_tell_the_whole_policy() -> None:
    settings = ScheduleSettings(
        "every",
        every_s=3600.0,
        run_kind="incremental",
        windows=(parse_window("mon-fri 06:00-22:00"),),
        missed="all",
        catch_up_per_min=3.0,
        overlap="replace",
    )
    assert policy_words(settings, "k") == (
        "every hour, incremental runs, within mon-fri 06:00-22:00, catches up on every"
        " missed tick, 3 a minute, replaces a run that has not ended"
    )
    assert policy_words(ScheduleSettings("every", every_s=60.0), "k") == "every minute"
    assert schedule_from(settings, "k").words() == "every hour"
