"""Schedules: pure rules that answer when a source is due next, also when the clocks change."""

from __future__ import annotations

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
from penstock.settings import ScheduleSettings

PARIS, NEW_YORK = "Europe/Paris", "America/New_York"


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
