"""Schedules: pure rules that answer when a source is due next, also when the clocks change."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.schedules import Cron, Every, Manual, Schedule, schedule_from
from penstock.schedules.cadence import CLASSES, INTERVAL_S, Cadence, CadenceClass
from penstock.schedules.calendars import _sessions as calendar_ranges
from penstock.schedules.calendars import known_until, sessions
from penstock.schedules.session import Session
from penstock.schedules.spread import spread
from penstock.schedules.start_hours import NEVER, calendar_warning, slot_opens_at
from penstock.settings import ScheduleSettings
from penstock.settings.calendars import NAMES
from penstock.settings.values import SessionSettings

PARIS, NEW_YORK, TOKYO = "Europe/Paris", "America/New_York", "Asia/Tokyo"


def at(text: str, zone: str = "UTC", fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def dues(schedule: Schedule, after: float, until: float) -> list[float]:
    found: list[float] = []
    while (due := schedule.next_due(after)) is not None and due <= until:
        assert due > after
        found.append(due)
        after = due
    return found


def shown(moments: list[float], zone: str) -> list[str]:
    return [f"{datetime.fromtimestamp(each, ZoneInfo(zone)):%d %H:%M %z}" for each in moments]


def test_manual_is_never_due() -> None:
    assert Manual().next_due(0.0) is None
    assert Manual().words() == "by hand only"


def test_either_of_two_days_is_said_to_be_either() -> None:
    assert Cron("0 0 13 * FRI").words() == "at 00:00 on the 13th day of month or on Friday (UTC)"
    said = "at 00:00 on every second day of month if it's on Friday (UTC)"
    assert Cron("0 0 */2 * FRI").words() == said


def test_jitter_is_said() -> None:
    assert Every(21600.0, 600.0, "a").words() == "every 6 hours, up to 10 minutes later"
    assert Every(21600.0, 60.0, "a").words() == "every 6 hours, up to 1 minute later"


def test_every_is_due_one_interval_after_the_last_due_moment() -> None:
    assert Every(21600.0).next_due(100.0) == 21700.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1.0, "every second"),
        (90.0, "every 90 seconds"),
        (60.0, "every minute"),
        (21600.0, "every 6 hours"),
        (86400.0, "every day"),
        (0.5, "every 0.5 seconds"),
    ],
)
def test_every_in_words(seconds: float, words: str) -> None:
    assert Every(seconds).words() == words


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_an_interval_of_nothing_is_refused(seconds: float) -> None:
    with pytest.raises(ConfigError):
        Every(seconds)


def test_settings_choose_the_schedule() -> None:
    assert schedule_from(ScheduleSettings()) == Manual()
    assert schedule_from(ScheduleSettings("every", every_s=60.0)) == Every(60.0)
    nightly = schedule_from(ScheduleSettings("cron", cron="0 2 * * *", timezone=PARIS))
    assert nightly.next_due(at("2026-01-10T12:00", PARIS)) == at("2026-01-11T02:00", PARIS)
    assert nightly.words() == "at 02:00 every day (Europe/Paris)"


@pytest.mark.parametrize("kind", ["every", "cron", "cadence"])
def test_settings_that_lack_their_rule_are_refused(kind: str) -> None:
    settings = ScheduleSettings(kind)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=kind):
        schedule_from(settings)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/15 * * * *", "2026-03-01T10:15:00"),
        ("0 2 * * *", "2026-03-02T02:00:00"),
        ("@hourly", "2026-03-01T11:00:00"),
        ("@daily", "2026-03-02T00:00:00"),
        ("@weekly", "2026-03-08T00:00:00"),
        ("@monthly", "2026-04-01T00:00:00"),
        ("@yearly", "2027-01-01T00:00:00"),
        ("*/20 * * * * *", "2026-03-01T10:00:20"),
        ("30 5 10 * * *", "2026-03-01T10:05:30"),
        ("0 9 * * MON-FRI", "2026-03-02T09:00:00"),
        ("0 0 L * *", "2026-03-31T00:00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00:00"),
    ],
)
def test_cron_in_utc(expression: str, expected: str) -> None:
    assert Cron(expression).next_due(at("2026-03-01T10:00:00")) == at(expected)


def test_cron_is_due_strictly_after_the_moment_asked_about() -> None:
    cron = Cron("0 2 * * *")
    due = at("2026-03-02T02:00:00")
    assert cron.next_due(due - 0.25) == due
    assert cron.next_due(due) == due + 86400
    assert cron.next_due(due + 0.25) == due + 86400


def test_a_wrong_expression_or_zone_is_refused() -> None:
    with pytest.raises(ConfigError, match="not a cron expression"):
        Cron("61 * * * *")
    with pytest.raises(ConfigError, match="did you mean 'Europe/Paris'"):
        Cron("@daily", "Europe/Pariss")


# The days when the clocks change. Paris 2026: 29 March 02:00 -> 03:00, 25 October 03:00 -> 02:00.
# New York 2026: 8 March 02:00 -> 03:00, 1 November 02:00 -> 01:00.


@pytest.mark.parametrize(
    ("zone", "day", "expected"),
    [
        (PARIS, "2026-03-28", ["28 02:30 +0100", "29 03:00 +0200", "30 02:30 +0200"]),
        (NEW_YORK, "2026-03-07", ["07 02:30 -0500", "08 03:00 -0400", "09 02:30 -0400"]),
    ],
)
@pytest.mark.parametrize("expression", ["30 2 * * *", "0 30 2 * * *"])
def test_a_time_that_the_clocks_skip_fires_when_the_gap_ends(
    zone: str, day: str, expected: list[str], expression: str
) -> None:
    start = at(day, zone)
    assert shown(dues(Cron(expression, zone), start, start + 3 * 86400), zone) == expected


@pytest.mark.parametrize(
    ("zone", "day", "hour", "expected"),
    [
        (PARIS, "2026-10-24", 2, ["24 02:30 +0200", "25 02:30 +0200", "26 02:30 +0100"]),
        (NEW_YORK, "2026-10-31", 1, ["31 01:30 -0400", "01 01:30 -0400", "02 01:30 -0500"]),
    ],
)
@pytest.mark.parametrize("fields", ["30 {} * * *", "0 30 {} * * *"])
def test_a_time_that_the_clocks_show_twice_fires_once(
    zone: str, day: str, hour: int, expected: list[str], fields: str
) -> None:
    start = at(day, zone)
    cron = Cron(fields.format(hour), zone)
    assert shown(dues(cron, start, start + 3 * 86400), zone) == expected


def test_asked_in_the_second_pass_the_first_pass_is_over() -> None:
    second_pass = at("2026-10-25T02:10", PARIS, fold=1)
    due = Cron("30 2 * * *", PARIS).next_due(second_pass)
    assert due == at("2026-10-26T02:30", PARIS)


def test_several_skipped_times_become_one() -> None:
    start = at("2026-03-29T01:00", PARIS)
    found = dues(Cron("0,20,40 2 * * *", PARIS), start, start + 20 * 3600)
    assert shown(found, PARIS) == ["29 03:00 +0200"]


@pytest.mark.parametrize("expression", ["*/15 * * * *", "0 */15 0-23 * * *", "*/15 0-23 * * *"])
@pytest.mark.parametrize(
    ("zone", "day"),
    [
        (PARIS, "2026-03-29"),
        (PARIS, "2026-10-25"),
        (NEW_YORK, "2026-03-08"),
        (NEW_YORK, "2026-11-01"),
    ],
)
def test_an_interval_keeps_its_step_through_a_change(expression: str, zone: str, day: str) -> None:
    start = at(day, zone)
    found = dues(Cron(expression, zone), start, start + 6 * 3600)
    assert {later - earlier for earlier, later in pairwise(found)} == {900.0}
    assert len(found) == 24


def changes(zone: str, start: datetime, days: int) -> Iterator[datetime]:
    """The days around which the zone's offset changes."""
    for offset in range(days):
        day = start + timedelta(days=offset)
        before, after = day.astimezone(ZoneInfo(zone)), (day + timedelta(days=1))
        if before.utcoffset() != after.astimezone(ZoneInfo(zone)).utcoffset():
            yield day


def oracle(expression: str, zone: str, start: float, until: float) -> list[float]:
    """Watches the wall clock go by, minute by minute, and fires when it first passes a slot."""
    slots = CronSim(expression, _wall(start, zone))
    slot, furthest, found = next(slots), _wall(start, zone), []
    for moment in range(int(start) + 60, int(until) + 1, 60):
        wall = _wall(moment, zone)
        if wall <= furthest:
            continue
        furthest = wall
        if slot <= wall:
            found.append(float(moment))
        while slot <= wall:
            slot = next(slots)
    return found


def _wall(moment: float, zone: str) -> datetime:
    return datetime.fromtimestamp(moment, ZoneInfo(zone)).replace(tzinfo=None, fold=0)


@pytest.mark.parametrize(
    ("zone", "year"),
    [
        (PARIS, 2026),
        (NEW_YORK, 2026),
        ("Australia/Lord_Howe", 2026),  # half an hour
        ("Africa/Cairo", 2026),  # at midnight
        ("America/St_Johns", 2006),  # one minute past midnight
        ("Pacific/Apia", 2011),  # a whole day is skipped
        ("Asia/Kathmandu", 2026),  # never changes
    ],
)
@pytest.mark.parametrize(
    "expression", ["30 2 * * *", "0 0 * * *", "15,45 1-3 * * *", "0 */2 * * *", "7 0,23 * * *"]
)
def test_every_wall_clock_time_fires_once_whatever_the_clocks_do(
    zone: str, year: int, expression: str
) -> None:
    cron = Cron(expression, zone)
    for day in changes(zone, datetime(year, 1, 1, tzinfo=UTC), 365):
        start, until = day.timestamp() - 86400, day.timestamp() + 3 * 86400
        assert dues(cron, start, until) == oracle(expression, zone, start, until)


@given(
    after=st.floats(min_value=0, max_value=4e9),
    minute=st.integers(0, 59),
    hour=st.integers(0, 23),
    zone=st.sampled_from([PARIS, NEW_YORK, "Asia/Tokyo", "Pacific/Chatham"]),
)
def test_a_daily_time_is_due_within_a_day_and_an_hour(
    after: float, minute: int, hour: int, zone: str
) -> None:
    due = Cron(f"{minute} {hour} * * *", zone).next_due(after)
    assert due is not None
    assert 0 < due - after <= 25 * 3600


# Classes.

DAY_S = 86400.0


@pytest.mark.parametrize(
    ("level", "words", "interval_s"),
    [
        ("high", "daily (high)", DAY_S),
        ("medium", "every 2 to 3 days (medium)", 2.5 * DAY_S),
        ("low", "weekly (low)", 7 * DAY_S),
        ("probe", "a probe every 2 days (probe)", 2 * DAY_S),
    ],
)
def test_a_class_is_due_once_in_each_of_its_intervals(
    level: CadenceClass, words: str, interval_s: float
) -> None:
    cadence = Cadence(level, "acme.com")
    found = dues(cadence, 1.8e9, 1.8e9 + 20 * interval_s)
    assert len(found) == 20
    assert all(abs(b - a - interval_s) < 1e-3 for a, b in pairwise(found))
    assert cadence.words() == words


@given(st.integers(0, 10_000), st.sampled_from(CLASSES))
def test_a_thousand_sources_of_a_class_are_spread_over_its_interval(
    seed: int, level: CadenceClass
) -> None:
    every_s = INTERVAL_S[level]
    first = [Cadence(level, f"site-{seed}-{n}.com").next_due(1.8e9) for n in range(1000)]
    parts = Counter(int((due - 1.8e9) / every_s * 24) for due in first if due is not None)
    # 41.7 in each on average; six standard deviations are 38.
    assert set(parts) <= set(range(25))
    assert all(4 <= parts[part] <= 80 for part in range(24))


@given(st.text(max_size=30), st.floats(0, 4e9), st.sampled_from(CLASSES))
def test_the_moment_of_a_class_is_its_sources_own_whenever_it_is_asked(
    key: str, after: float, level: CadenceClass
) -> None:
    cadence, every_s = Cadence(level, key), INTERVAL_S[level]
    due = cadence.next_due(after)
    assert due is not None
    assert after < due <= after + every_s + 1e-3
    assert cadence.next_due((after + due) / 2) in (due, cadence.next_due(due))


@given(st.text(max_size=30), st.floats(0.001, 1e6), st.text(max_size=10))
def test_a_spread_is_within_its_width_and_always_the_same(
    key: str, width: float, what: str
) -> None:
    assert 0 <= spread(key, width, what) <= width
    assert spread(key, width, what) == spread(key, width, what)


# Jitter.


@given(
    every_s=st.floats(1.0, 1e6),
    share=st.floats(0.001, 1.0),
    key=st.text(max_size=20),
    after=st.floats(0, 4e9),
)
def test_jitter_is_added_to_each_interval_and_never_adds_up(
    every_s: float, share: float, key: str, after: float
) -> None:
    jitter_s = every_s * share
    schedule = Every(every_s, jitter_s, key)
    for _ in range(20):
        due = schedule.next_due(after)
        assert due is not None
        assert due > after
        # How far it is behind the grid; what floats lose is far less than a millisecond.
        late = due - math.floor(due / every_s + 1e-9) * every_s
        assert late <= jitter_s + 1e-3 or every_s - late < 1e-3
        assert due - after <= every_s + jitter_s + 1e-3
        after = due


@given(st.floats(0.01, 1.0), st.text(max_size=20), st.floats(0, 1))
def test_jitter_leaves_no_interval_out(share: float, key: str, asked: float) -> None:
    every_s, first = 3600.0, 500_000 * 3600.0
    schedule = Every(every_s, every_s * share, key)
    found = dues(schedule, first - 1.0, first + 100 * every_s - 1.0)
    # Those of the first and last interval may lie beyond the bounds.
    assert len(found) in (99, 100, 101)
    for due in found:
        assert schedule.next_due(due - asked * 0.001 - 1e-6) == due


def test_jitter_is_the_same_for_every_scheduler_and_another_for_every_source() -> None:
    ours, theirs = (Every(3600.0, 600.0, key) for key in ("a.com", "b.com"))
    first = dues(ours, 1.8e9, 1.8e9 + 86400)
    assert dues(Every(3600.0, 600.0, "a.com"), 1.8e9, 1.8e9 + 86400) == first
    assert len({round(due % 3600) for due in first}) > 10
    assert dues(theirs, 1.8e9, 1.8e9 + 86400) != first


@pytest.mark.parametrize("jitter_s", [-1.0, 61.0, float("nan")])
def test_jitter_that_is_longer_than_its_interval_is_refused(jitter_s: float) -> None:
    with pytest.raises(ConfigError, match="jitter"):
        Every(60.0, jitter_s)


# Sessions.

CLOSED = {
    2026: {"01-01", "01-19", "02-16", "04-03", "05-25", "06-19", "07-03", "09-07", "11-26", "12-25"},
    2027: {"01-01", "01-18", "02-15", "03-26", "05-31", "06-18", "07-05", "09-06", "11-25", "12-24"},
}  # fmt: skip
HALF = {2026: {"11-27", "12-24"}, 2027: {"11-26"}}


@pytest.mark.parametrize("year", [2026, 2027])
def test_a_session_is_due_on_every_day_of_its_exchange_and_on_no_holiday(year: int) -> None:
    start, end = at(f"{year}-01-01", NEW_YORK), at(f"{year}-12-31T23:59", NEW_YORK)
    days = [datetime(year, 1, 1) + timedelta(days=n) for n in range(365)]  # noqa: DTZ001
    expected = [
        f"{day:%m-%d}" for day in days if day.weekday() < 5 and f"{day:%m-%d}" not in CLOSED[year]
    ]
    for what, usual in (("open", "09:30"), ("close", "16:00")):
        found = [
            datetime.fromtimestamp(due, ZoneInfo(NEW_YORK))
            for due in dues(Session("XNYS", what), start, end)  # type: ignore[arg-type]
        ]
        assert [f"{each:%m-%d}" for each in found] == expected
        half = {f"{each:%m-%d}" for each in found if f"{each:%H:%M}" != usual}
        assert half == (HALF[year] if what == "close" else set())
        assert {f"{each:%H:%M}" for each in found} <= {usual, "13:00"}


def test_an_offset_moves_with_the_half_day() -> None:
    close = Session("XNYS", "close", -900.0)
    assert close.next_due(at("2026-11-27", NEW_YORK)) == at("2026-11-27T12:45", NEW_YORK)
    assert close.words() == "15 min before the close of XNYS"
    opens = Session("XNYS", "open", 900.0)
    assert opens.next_due(at("2026-11-26", NEW_YORK)) == at("2026-11-27T09:45", NEW_YORK)
    assert opens.words() == "15 min after the open of XNYS"
    assert Session("XNYS").words() == "at the open of XNYS"


def test_sessions_keep_to_the_clock_of_their_exchange_when_it_is_changed() -> None:
    friday, monday = at("2026-03-06T09:30", NEW_YORK), at("2026-03-09T09:30", NEW_YORK)
    assert Session("XNYS").next_due(friday) == monday
    assert monday - friday == 3 * 86400 - 3600


def test_sessions_go_on_over_the_end_of_a_year() -> None:
    last = at("2026-12-31T09:30", NEW_YORK)
    assert Session("XNYS").next_due(last) == at("2027-01-04T09:30", NEW_YORK)
    assert Session("XNYS", "open", 5 * 86400.0).next_due(at("2027-01-01")) is not None


@pytest.mark.parametrize("year", [2025, 2030, 2040])
def test_calendars_are_asked_with_bounds_of_their_own(year: int) -> None:
    """The library's own end is a year from today; a plan for later must not end there."""
    due = Session("XNYS").next_due(at(f"{year}-06-02T00:00", NEW_YORK))
    assert due is not None
    assert datetime.fromtimestamp(due, UTC).year == year


def test_an_exchange_is_in_session_from_its_open_until_its_close() -> None:
    found = sessions("XNYS", at("2026-11-27", NEW_YORK))
    for moment, is_open in (
        ("09:29:59", False),
        ("09:30", True),
        ("12:59:59", True),
        ("13:00", False),
    ):
        assert found.holds(at(f"2026-11-27T{moment}", NEW_YORK)) is is_open
    assert not found.holds(at("2026-11-26T12:00", NEW_YORK))
    assert not found.holds(0.0)


def test_an_exchange_with_a_break_at_noon_is_not_in_session_then() -> None:
    found = sessions("XTKS", at("2026-11-16", TOKYO))
    for moment, is_open in (("09:00", True), ("11:30", False), ("12:29", False), ("12:30", True)):
        assert found.holds(at(f"2026-11-16T{moment}", TOKYO)) is is_open
    hours = ScheduleSettings("every", every_s=60.0, during="in-session", calendar="XTKS")
    assert slot_opens_at(hours, at("2026-11-16T12:00", TOKYO)) == at("2026-11-16T12:30", TOKYO)
    opens = [
        Session("XTKS").next_due(at(f"2026-11-16T{hour}", TOKYO)) for hour in ("08:00", "09:00")
    ]
    assert opens == [at("2026-11-16T09:00", TOKYO), at("2026-11-17T09:00", TOKYO)]


def test_years_that_a_calendar_knows_nothing_of_have_no_sessions() -> None:
    """Those of Shanghai are announced year by year."""
    assert Session("XSHG").next_due(at("2099-01-01")) is None
    assert not sessions("XSHG", at("2099-01-01")).holds(at("2099-06-01"))


@pytest.mark.parametrize("during", ["in-session", "out-of-session"])
def test_nothing_starts_by_a_calendar_past_its_end(during: str) -> None:
    hours = ScheduleSettings("every", every_s=60.0, during=during, calendar="XSHG")  # type: ignore[arg-type]
    end = known_until("XSHG")

    assert slot_opens_at(hours, end) == slot_opens_at(hours, end + 86_400.0) == NEVER
    assert "install a newer exchange-calendars" in calendar_warning(hours, end)


def test_the_end_of_a_calendar_is_said_a_month_ahead() -> None:
    settings = ScheduleSettings("session", session=SessionSettings("XSHG", "open", 0.0))
    end = known_until("XSHG")

    assert calendar_warning(settings, end - 31 * 86_400.0) == ""
    assert "the calendar XSHG is known until" in calendar_warning(settings, end - 29 * 86_400.0)


def test_a_year_of_a_calendar_is_worked_out_once() -> None:
    """The library takes a tenth of a second for each calendar and range that it is asked about."""
    calendar_ranges.cache_clear()
    dues(Session("XNYS"), at("2026-11-16"), at("2027-11-16"))
    assert calendar_ranges.cache_info().misses == 1


def test_an_unknown_calendar_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"'XNYSS' is not a calendar .*, did you mean 'XNYS'"):
        Session("XNYSS")


def test_every_calendar_that_is_taken_unasked_is_one_that_the_library_knows() -> None:
    library = pytest.importorskip("exchange_calendars")
    assert set(library.get_calendar_names(include_aliases=True)) >= NAMES
