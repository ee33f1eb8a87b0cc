"""Exports: what another scheduler reads starts what Penstock would have started, when it would have."""

from __future__ import annotations

import calendar
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.exporters.crontab import crontab
from penstock.exporters.fields import (
    Fields,
    calendar_texts,
    cron_text,
    fields_of,
    matches,
    of_interval,
    shifted,
)
from penstock.exporters.github_actions import Workplace, github_actions
from penstock.exporters.moments import moments_of, unread
from penstock.exporters.starts import Export, Inexpressible, Place, Start
from penstock.exporters.systemd import systemd, unit_name
from penstock.schedules import Cron, Schedule, schedule_from
from penstock.settings import ScheduleSettings
from penstock.settings.opening_hours import parse_window
from penstock.settings.values import NearSettings, SessionSettings, WatchSettings

PARIS, NEW_YORK, LORD_HOWE = "Europe/Paris", "America/New_York", "Australia/Lord_Howe"
ZONES = ["UTC", PARIS, NEW_YORK, LORD_HOWE, "Asia/Kolkata", "Africa/Cairo", "America/Santiago"]
YEAR = 2027
FIRST = datetime(YEAR, 1, 1, tzinfo=UTC).timestamp() - 1
LAST = datetime(YEAR + 1, 1, 1, tzinfo=UTC).timestamp() - 1
HOSTILE = [
    "plain.com",
    "-rf",
    "--help",
    "a%b%%c",
    "a'b\"c",
    "$(id)`id`$HOME${HOME}",
    "a;b&c|d>e#f",
    "{a:[b],c}",
    "müller.de/ä?q=1&r=é",
    "*?[a-z]!~",
    "%n%i%h",
    "@daily",
    "&anchor,*alias",
]
PLACE = Place(
    "shop-watch", "/srv/shop watch", ("/opt/p/bin/python", "-P", "-m", "penstock"), user="shop"
)
AT = Workplace("", ("penstock.db", "snapshots"), ("penstock==0.1.0",), "3.11")


def cron(text: str, zone: str = "UTC", **more: Any) -> ScheduleSettings:
    return ScheduleSettings("cron", cron=text, timezone=zone, **more)


def dues(schedule: Schedule, after: float = FIRST, until: float = LAST) -> list[float]:
    found: list[float] = []
    while (due := schedule.next_due(after)) is not None and due <= until:
        found.append(due)
        after = due
    return found


def the_file(export: Export) -> str:
    [text] = export.files.values()
    return text


# How others read what is written: a cron that goes by Debian's rules, and a systemd of our own.


@cache
def read_cron(text: str, zone: str = "UTC") -> set[float]:
    found: set[float] = set()
    for moment in CronSim(text, datetime.fromtimestamp(FIRST, ZoneInfo(zone))):
        if moment.timestamp() > LAST:
            break
        found.add(moment.timestamp())
    return found


CALENDAR = re.compile(
    r"(?:(?P<names>[A-Z][A-Za-z,.]+) )?(?P<year>\*|\d{4})-(?P<month>[\d*,.]+)"
    r"(?P<dash>[-~])(?P<day>[\d*,./]+) (?P<hour>[\d*,.]+):(?P<minute>[\d*,.]+):(?P<second>[\d*,.]+)"
    r" (?P<zone>\S+)"
)
NAMES = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


def read_calendar(text: str) -> set[float]:
    """Walks through the days of a year: a time that the clock does not show is not, the first of two is."""
    match = CALENDAR.fullmatch(text)
    assert match is not None, text
    zone, found = ZoneInfo(match["zone"]), set()
    hours, minutes, seconds = (
        [n for n in range(size) if _is_one(match[part], n)]
        for part, size in (("hour", 24), ("minute", 60), ("second", 60))
    )
    for day in _days(date(YEAR - 1, 12, 30), date(YEAR + 1, 1, 2)):
        if not _is_day(match, day):
            continue
        for hour in hours:
            for minute in minutes:
                for second in seconds:
                    wall = datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=zone)
                    back = wall.astimezone(UTC).astimezone(zone)
                    is_there = back.replace(tzinfo=None) == wall.replace(tzinfo=None)
                    if is_there and FIRST < wall.timestamp() <= LAST:
                        found.add(wall.timestamp())
    return found


def _is_day(match: re.Match[str], day: date) -> bool:
    names = match["names"] or "Mon..Sun"
    weekdays: set[int] = set()
    for part in names.split(","):
        first, _, last = part.partition("..")
        weekdays |= set(range(NAMES.index(first), NAMES.index(last or first) + 1))
    left = calendar.monthrange(day.year, day.month)[1] - day.day + 1
    if match["dash"] == "~":
        is_day = left <= 7 if match["day"] == "07/1" else left == int(match["day"])
    else:
        is_day = _is_one(match["day"], day.day)
    is_date = _is_one(match["month"], day.month) and match["year"] in ("*", str(day.year))
    return day.weekday() in weekdays and is_date and is_day


def _is_one(text: str, number: int) -> bool:
    for part in text.split(","):
        first, _, last = part.partition("..")
        if part == "*" or int(first) <= number <= int(last or first):
            return True
    return False


def _days(first: date, last: date) -> Iterator[date]:
    while first <= last:
        yield first
        first += timedelta(days=1)


def read_timer(text: str) -> set[float]:
    lines = [
        line.removeprefix("OnCalendar=") for line in text.splitlines() if "OnCalendar=" in line
    ]
    assert lines
    return set().union(*(read_calendar(line) for line in lines))


# The same starts.

minutes = st.sampled_from(["0", "30", "7,37", "15-17", "*/30"])
hours = st.sampled_from(["2", "0,23", "1-3", "*/12"])
days = st.sampled_from(["*", "1", "29-31", "*/10", "L", "LW", "15,L"])
months = st.sampled_from(["*", "3,10", "JAN-MAR", "*/5"])
weekdays = st.sampled_from(["*", "MON-FRI", "0", "7", "1#1", "5L", "SUN#3,2", "*/3"])
expressions = st.tuples(minutes, hours, days, months, weekdays).map(" ".join)


@settings(max_examples=40, deadline=None)
@given(expressions)
def test_cron_line_starts_what_its_schedule_does(expression: str) -> None:
    try:
        text = cron_text(fields_of(expression))
    except Inexpressible:
        assert re.search("[L#]|[*]/.*[^*]$", expression)
        return
    assert read_cron(text) == set(dues(Cron(expression)))


@settings(max_examples=40, deadline=None)
@given(expressions)
def test_a_moment_matches_its_fields(expression: str) -> None:
    fields, due = fields_of(expression), dues(Cron(expression))
    first = datetime(YEAR, 1, 1, fields.hours[0], fields.minutes[0], tzinfo=UTC)
    for day in _days(date(YEAR, 1, 1), date(YEAR, 12, 31)):
        wall = datetime.combine(day, first.time(), tzinfo=UTC)
        assert matches(fields, wall) == (wall.timestamp() in due)
        assert not matches(fields, wall + timedelta(seconds=30))


@settings(max_examples=60, deadline=None)
@given(expressions, st.sampled_from(ZONES))
def test_timer_starts_what_its_schedule_does(expression: str, zone: str) -> None:
    start = Start("acme.com", cron(expression, zone))
    export = systemd([start], PLACE, YEAR)
    if export.left_out:
        assert re.search("[L#]|clocks of", export.left_out[0] + expression)
        return
    timer = next(text for name, text in export.files.items() if name.endswith(".timer"))
    assert read_timer(timer) == set(dues(Cron(expression, zone)))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "expression", ["30 2 * * *", "0 0 * * *", "15,45 1-3 * * *", "0 9 * * 1-5"]
)
def test_workflow_starts_what_its_schedule_does(expression: str, zone: str) -> None:
    export = github_actions([Start("a", cron(expression, zone))], ["a"], PLACE, AT)
    [entry] = yaml.safe_load(the_file(export))[True]["schedule"]
    assert read_cron(entry["cron"], entry.get("timezone", "UTC")) == set(
        dues(Cron(expression, zone))
    )


@pytest.mark.parametrize("zone", [PARIS, "Asia/Kathmandu"])
def test_what_is_due_every_hour_is_said_in_utc(zone: str) -> None:
    start = Start("a", cron("40 * * * *", zone))
    expected = set(dues(Cron("40 * * * *", zone)))
    timer = [t for n, t in systemd([start], PLACE, YEAR).files.items() if n.endswith(".timer")]
    assert read_timer(timer[0]) == expected
    [line] = lines_of(crontab([start], PLACE))
    assert read_cron(" ".join(line.split()[:5])) == expected
    workflow = yaml.safe_load(the_file(github_actions([start], ["a"], PLACE, AT)))
    assert workflow[True]["schedule"] == [{"cron": " ".join(line.split()[:5])}]


@pytest.mark.parametrize("every_s", [2700.0, 5400.0, 21600.0, 86400.0, 604800.0])
def test_an_interval_keeps_its_interval(every_s: float) -> None:
    start = Start("acme.com", ScheduleSettings("every", every_s=every_s))
    fields, zone = moments_of(start)
    assert zone == "UTC"
    found = sorted(set().union(*(read_cron(cron_text(each)) for each in fields)))
    schedule = schedule_from(start.settings, "acme.com")
    assert found == dues(schedule, found[0] - every_s)


def test_intervals_of_different_sources_are_spread() -> None:
    starts = [Start(f"site{n}.com", ScheduleSettings("every", every_s=86400.0)) for n in range(100)]
    assert len({cron_text(moments_of(each)[0][0]) for each in starts}) > 80


@pytest.mark.parametrize("level", ["high", "low"])
def test_a_class_starts_in_the_minute_in_which_it_is_due(level: str) -> None:
    start = Start("acme.com", ScheduleSettings("cadence", cadence=level))
    [fields], _ = moments_of(start)
    expected = [due // 60 * 60 for due in dues(schedule_from(start.settings, "acme.com"))]
    assert sorted(read_cron(cron_text(fields))) == expected


def test_what_fits_no_week_is_counted_by_systemd_and_left_out_by_cron() -> None:
    start = Start("acme.com", ScheduleSettings("cadence", cadence="medium"))
    export = systemd([start], PLACE, YEAR)
    timer = next(text for name, text in export.files.items() if name.endswith(".timer"))
    assert "OnActiveSec=216000s\nOnUnitActiveSec=216000s\n" in timer
    assert export.left_out == ()
    assert "starts nothing that was missed" in export.otherwise[0]
    assert "cron has no moments that are 216000s apart" in crontab([start], PLACE).left_out[0]


def test_a_time_that_is_skipped_is_written_out_for_systemd() -> None:
    gaps = unread("30 2 * * *", PARIS, 2027, 1)
    shown = [f"{datetime.fromtimestamp(each, UTC):%Y-%m-%d %H:%M}" for each in gaps]
    assert shown == ["2027-03-28 01:00", "2028-03-26 01:00"]
    assert unread("30 4 * * *", PARIS, 2027, 9) == []


def test_fields_move_with_the_clock() -> None:
    evening = Fields((30,), (20,), weekdays=(5, 6))
    assert shifted(evening, 330) == (Fields((0,), (2,), weekdays=(0, 6)),)
    assert shifted(evening, 0) == (evening,)
    with pytest.raises(Inexpressible):
        shifted(Fields((0,), (1,), days=(1,)), 60)
    with pytest.raises(Inexpressible):
        of_interval(7 * 3600.0 + 1, 0)


@pytest.mark.parametrize(
    ("zone", "host", "expected"),
    [
        ("UTC", "UTC", "30 2 * * 1-5"),
        (PARIS, PARIS, "30 2 * * 1-5"),
        ("Asia/Kolkata", "UTC", "0 21 * * 0-4"),
        ("UTC", "Asia/Kolkata", "0 8 * * 1-5"),
    ],
)
def test_cron_lines_are_by_the_clock_of_the_host(zone: str, host: str, expected: str) -> None:
    [line] = lines_of(crontab([Start("a", cron("30 2 * * 1-5", zone))], PLACE, host))
    assert line.startswith(f"{expected} shop ")


@pytest.mark.parametrize(("zone", "host"), [(PARIS, "UTC"), ("UTC", PARIS), (PARIS, NEW_YORK)])
def test_cron_leaves_out_what_another_clock_decides(zone: str, host: str) -> None:
    export = crontab([Start("a", cron("30 2 * * *", zone))], PLACE, host)
    assert lines_of(export) == []
    assert f"cron has one time zone, here {host}" in export.left_out[0]
    assert f"# left out: {export.left_out[0]}" in the_file(export)


# What can't be said.


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        (
            ScheduleSettings("session", session=SessionSettings("XNYS")),
            "knows no exchange's sessions",
        ),
        (ScheduleSettings("watch", watch=WatchSettings("in/*")), "does not watch files"),
        (ScheduleSettings("signal", signals=("go",)), "knows no signals"),
        (ScheduleSettings("after", after=("b",)), "does not know when another source has run"),
        (ScheduleSettings("cadence", cadence="auto"), "does not move a source between classes"),
        (cron("0 2 * * *", windows=(parse_window("22:00-06:00"),)), "outside its hours"),
        (cron("0 2 * * *", blackouts=(parse_window("22:00-06:00"),)), "outside its hours"),
        (
            ScheduleSettings("every", every_s=3600.0, during="in-session", calendar="XNYS"),
            "its hours",
        ),
    ],
)
def test_what_a_target_can_not_say_is_left_out(schedule: ScheduleSettings, reason: str) -> None:
    start = Start("acme.com", schedule)
    for export in (
        crontab([start], PLACE),
        systemd([start], PLACE, YEAR),
        github_actions([start], ["acme.com"], PLACE, AT),
    ):
        [said] = export.left_out
        assert said.startswith("acme.com, schedule main: ")
        assert reason in said
    assert systemd([start], PLACE, YEAR).files == {}
    assert (
        "schedule" not in yaml.safe_load(the_file(github_actions([start], ["a"], PLACE, AT)))[True]
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"near": NearSettings(600.0, 5.0)}, "near"),
        ({"missed": "all"}, "missed: all"),
        ({"overlap": "queue"}, "overlap: queue"),
        ({"overlap": "replace"}, "overlap: replace"),
    ],
)
def test_what_is_dropped_is_said_and_the_rest_starts(more: dict[str, Any], said: str) -> None:
    start = Start("a", ScheduleSettings("every", every_s=3600.0, **more))
    for export in (
        crontab([start], PLACE),
        systemd([start], PLACE, YEAR),
        github_actions([start], ["a"], PLACE, AT),
    ):
        assert export.left_out == ()
        assert f"has no {said}; it starts without" in export.otherwise[0]
        assert any("1.." in t or "a" in t for t in export.files.values())
    assert lines_of(crontab([start], PLACE))


def test_only_systemd_has_jitter() -> None:
    start = Start("a", ScheduleSettings("every", every_s=3600.0, jitter_s=90.0))
    export = systemd([start], PLACE, YEAR)
    assert export.is_whole
    assert any("RandomizedDelaySec=90s" in text for text in export.files.values())
    assert "jitter" in crontab([start], PLACE).otherwise[0]
    assert "jitter" in github_actions([start], ["a"], PLACE, AT).otherwise[0]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("*/20 * * * * *", "has no seconds"),
        ("0 0 L * *", "no last day of a month"),
        ("0 0 * * 1#2", "no nth weekday"),
        ("0 0 */2 * 1", "is not agreed on what"),
    ],
)
def test_cron_leaves_out_what_only_some_crons_read(expression: str, reason: str) -> None:
    assert reason in crontab([Start("a", cron(expression))], PLACE).left_out[0]


@pytest.mark.parametrize("expression", ["* * * * *", "*/4 * * * *", "58 23 * * *"])
def test_github_starts_nothing_more_often_than_every_five_minutes(expression: str) -> None:
    export = github_actions([Start("a", cron(expression))], ["a"], PLACE, AT)
    assert bool(export.left_out) == (expression != "58 23 * * *")


def test_the_same_time_in_two_zones_is_told_apart() -> None:
    zones = [PARIS, NEW_YORK, "Asia/Tokyo", "UTC", "Africa/Cairo"]
    starts = [Start(f"s{n}", cron("30 2 * * *", zone)) for n, zone in enumerate(zones)]
    export = github_actions(starts, ["s"], PLACE, AT)
    workflow = yaml.safe_load(the_file(export))
    crons = [each["cron"] for each in workflow[True]["schedule"]]
    assert len(crons) == len(set(crons)) == 4
    assert all(read_cron(each) == read_cron("30 2 * * *") for each in crons)
    assert "s4, schedule main: GitHub can't tell 30 2 * * * from another's" in export.left_out
    for step in workflow["jobs"]["ingest"]["steps"]:
        if "by schedule" in step.get("name", ""):
            source = shlex.split(step["run"])[-1]
            entry = workflow[True]["schedule"][int(source[1:])]
            assert f"== '{entry['cron']}'" in step["if"]


# Hostile names.


def lines_of(export: Export) -> list[str]:
    lines = the_file(export).splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def as_cron_runs_it(line: str) -> list[str]:
    """Without the times and the user; a percent sign that is not escaped ends the command."""
    command = line.split(" ", 6)[6]
    before = re.split(r"(?<!\\)%", command)[0]
    return shlex.split(before.replace("\\%", "%"))


@pytest.mark.parametrize("key", HOSTILE)
def test_a_crontab_runs_the_source_whatever_it_is_called(key: str) -> None:
    [line] = lines_of(crontab([Start(key, cron("0 2 * * *"))], PLACE))
    words = as_cron_runs_it(line)
    assert words[:4] == ["/opt/p/bin/python", "-P", "-m", "penstock"]
    assert words[4:] == ["run", "--project", "/srv/shop watch", "--kind", "full", "--", key]


def test_a_crontab_sources_the_file_with_the_secrets() -> None:
    place = Place(
        "p", "/srv/p", ("penstock",), ("API_KEY", "HOME"), None, "/srv/it's 100%/p.env", "u"
    )
    [line] = lines_of(crontab([Start("a", cron("0 2 * * *"))], place))
    words = as_cron_runs_it(line)
    assert words[:6] == ["set", "-a;", ".", "/srv/it's 100%/p.env;", "set", "+a;"]
    head = the_file(crontab([], place))
    assert "must set, for its owner only: API_KEY\n" in head


@pytest.mark.parametrize("folder", ["/srv/a\\b", "/srv/a\nb", "/srv/" + "x" * 1000])
def test_a_folder_that_cron_can_not_take_is_left_out(folder: str) -> None:
    place = Place("p", folder, ("penstock",))
    export = crontab([Start("a", cron("0 2 * * *"))], place)
    assert lines_of(export) == []
    assert len(export.left_out) == 1


def as_systemd_runs_it(service: str) -> list[str]:
    """Quotes, then specifiers, then variables; anything that is left of these is expanded, and wrong."""
    line = next(line for line in service.splitlines() if line.startswith("ExecStart="))
    words = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
    found = []
    for word in words:
        plain = re.sub(r"\\(.)", r"\1", word)
        assert not re.search(r"(?<!%)(%%)*%(?!%)", plain)
        assert not re.search(r"(?<!\$)(\$\$)*\$(?!\$)", plain)
        found.append(plain.replace("%%", "%").replace("$$", "$"))
    return found


@pytest.mark.parametrize("key", [*HOSTILE, "back\\slash\\"])
def test_a_service_runs_the_source_whatever_it_is_called(key: str) -> None:
    start = Start(key, cron("0 2 * * *", name="nightly\\"))
    export = systemd([start], PLACE, YEAR)
    name = unit_name("shop-watch", start)
    assert set(export.files) == {f"{name}.service", f"{name}.timer"}
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,240}", name)
    words = as_systemd_runs_it(export.files[f"{name}.service"])
    assert words[4:] == ["run", "--project", "/srv/shop watch", "--kind", "full", "--", key]
    for text in export.files.values():
        assert not any(line.endswith("\\") for line in text.splitlines())
    assert 'ReadWritePaths="/srv/shop watch"' in export.files[f"{name}.service"]
    assert f"Unit={name}.service" in export.files[f"{name}.timer"]


def test_units_of_sources_that_look_alike_are_different() -> None:
    names = {unit_name("p", Start(key, cron("0 2 * * *"))) for key in ["a/b", "a?b", "a%b", "a b"]}
    assert len(names) == 4


def test_a_schedule_that_skips_what_it_missed_is_not_made_up_for() -> None:
    for missed, persistent in (("skip", "no"), ("once", "yes")):
        export = systemd([Start("a", cron("0 2 * * *", missed=missed))], PLACE, YEAR)
        assert any(f"Persistent={persistent}\n" in text for text in export.files.values())


@pytest.mark.parametrize("key", HOSTILE)
def test_a_workflow_runs_the_source_whatever_it_is_called(key: str) -> None:
    start = Start(key, cron("0 2 * * *", run_kind="incremental"))
    workflow = yaml.safe_load(the_file(github_actions([start], [key], PLACE, AT)))
    [step] = [s for s in workflow["jobs"]["ingest"]["steps"] if "by schedule" in s.get("name", "")]
    assert shlex.split(step["run"])[-5:] == ["--kind", "incremental", "--json", "--", key]
    assert key in workflow[True]["workflow_dispatch"]["inputs"]["source"]["options"]


def test_a_name_that_github_would_evaluate_is_left_out() -> None:
    key = "${{github.token}}"
    export = github_actions([Start(key, cron("0 2 * * *"))], [key], PLACE, AT)
    assert "read its name as an expression" in export.left_out[0]
    body = "".join(line for line in the_file(export).splitlines() if not line.startswith("#"))
    assert key not in body


# The whole workflow.


def a_workflow(at: Workplace = AT) -> str:
    place = Place("shop watch", "", ("penstock",), ("API_KEY", "GITHUB_X", "HOME"), "live")
    starts = [
        Start("a.com", cron("30 2 * * *", PARIS)),
        Start("a.com", cron("30 2 * * *", PARIS, name="again", run_kind="incremental")),
        Start("b.com", cron("30 2 * * *", PARIS)),
        Start("c.com", ScheduleSettings("every", every_s=21600.0, jitter_s=5.0)),
        *(Start(key, cron("10 4 * * 1-5")) for key in HOSTILE),
    ]
    return the_file(github_actions(starts, ["a.com", "b.com", *HOSTILE], place, at))


def test_a_workflow_asks_for_little_and_never_runs_twice() -> None:
    text = a_workflow()
    workflow = yaml.safe_load(text)
    job = workflow["jobs"]["ingest"]
    assert workflow["permissions"] == {}
    assert job["permissions"] == {"contents": "read"}
    assert workflow["concurrency"] == {
        "group": "penstock-shop-watch", "cancel-in-progress": False, "queue": "max",
    }  # fmt: skip
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert len(used) == 4
    assert all(re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", each) for each in used)
    running = [step for step in job["steps"] if "timeout-minutes" in step]
    assert all(step["timeout-minutes"] < job["timeout-minutes"] <= 360 for step in running)
    assert {tuple(step.get("env", {}))[:1] for step in running} == {("API_KEY",)}
    assert "${{ secrets.API_KEY }}" in text
    assert "GITHUB_X" not in text
    assert "HOME:" not in text
    assert all(
        shlex.split(s["run"])[:4] == ["penstock", "run", "--env", "live"] for s in running[:-1]
    )
    assert shlex.split(running[0]["run"])[-2:] == ["a.com", "b.com"]


def test_a_run_that_did_not_get_its_database_keeps_none() -> None:
    steps = yaml.safe_load(a_workflow())["jobs"]["ingest"]["steps"]
    ready = [index for index, step in enumerate(steps) if step.get("id") == "ready"]
    assert [steps[index]["uses"].split("@")[0] for index in ready] == ["actions/cache/restore"]
    assert "steps.ready.outcome == 'success'" in steps[-1]["if"]
    assert (
        steps[-1]["with"]["path"] == steps[ready[0]]["with"]["path"] == "penstock.db\nsnapshots\n"
    )


def test_on_postgres_nothing_is_kept_in_a_cache() -> None:
    text = a_workflow(Workplace("shop", (), ("penstock[postgres]==0.1.0",), "3.12"))
    assert "actions/cache" not in text
    assert "SQLite" not in text
    steps = yaml.safe_load(text)["jobs"]["ingest"]["steps"]
    assert [step["run"] for step in steps if step.get("id") == "ready"] == [
        "python -P -m pip install 'penstock[postgres]==0.1.0'"
    ]
    assert all(s["working-directory"] == "shop" for s in steps if "timeout-minutes" in s)


@pytest.mark.parametrize("path", ["a\nb", "${{x}}", "a'b", "!a"])
def test_a_path_that_a_workflow_can_not_take_is_refused(path: str) -> None:
    with pytest.raises(Inexpressible):
        github_actions([], [], PLACE, Workplace(path, (), (), "3.11"))


# What their own checkers say.


def tool(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed here")
    return found


def told(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("is_on_postgres", [False, True])
def test_github_accepts_the_workflow(tmp_path: Path, is_on_postgres: bool) -> None:
    at = Workplace("shop", (), ("penstock[postgres]==0.1.0",), "3.12") if is_on_postgres else AT
    file = tmp_path / ".github" / "workflows" / "penstock.yml"
    file.parent.mkdir(parents=True)
    file.write_text(a_workflow(at))
    told(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", str(file))
    told(
        tool("check-jsonschema"), "--builtin-schema", "custom.github-workflows-require-timeout",
        str(file),
    )  # fmt: skip
    found = told(
        tool("zizmor"), "--offline", "--persona", "auditor", "--format", "json", "--no-progress",
        "--quiet", str(file),
    )  # fmt: skip
    assert json.loads(found) == []


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    verify = tool("systemd-analyze")
    place = Place(
        "shop watch", "/srv/it's 100% \"$HOME\"", ("/opt/p/python",), ("API_KEY",), "live",
        "/srv/100%.env", "root",
    )  # fmt: skip
    starts = [Start(key, cron("30 2 * * *", PARIS)) for key in HOSTILE]
    starts += [
        Start("l", cron("0 0 L * *")),
        Start("lw", cron("0 0 LW 3 *")),
        Start("n", cron("*/20 0 9 * * 1#2,5L")),
        Start("or", cron("0 0 1,15 * 1")),
        Start("m", ScheduleSettings("cadence", cadence="medium")),
        Start("j", ScheduleSettings("every", every_s=600.0, jitter_s=60.0)),
    ]
    files = systemd(starts, place, YEAR).files
    assert len(files) == 2 * len(starts)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    said = told(verify, "verify", *(str(tmp_path / name) for name in files))
    assert str(tmp_path) not in said, said


def test_systemd_finds_little_that_a_service_may_do(tmp_path: Path) -> None:
    analyze = tool("systemd-analyze")
    start = Start("acme.com", cron("0 2 * * *"))
    file = tmp_path / f"{unit_name('shop-watch', start)}.service"
    file.write_text(systemd([start], PLACE, YEAR).files[file.name])
    # 10 is everything, and what a plain service has is above 9.
    told(analyze, "security", "--offline=true", "--threshold=45", "--no-pager", str(file))


def test_a_project_in_tmp_is_not_hidden_from_its_service() -> None:
    start = Start("acme.com", cron("0 2 * * *"))
    for folder, private in (("/srv/p", "yes"), ("/tmp/p", "no"), ("/var/tmp/p", "no")):
        files = systemd([start], Place("p", folder, ("penstock",), user="u"), YEAR).files
        assert any(f"PrivateTmp={private}\n" in text for text in files.values())


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("30 2 * * *", PARIS),
        ("30 1 * * *", NEW_YORK),
        ("15,45 1-3 * * *", NEW_YORK),
        ("0 0 * * *", "America/Santiago"),
        ("0 0 L * *", "UTC"),
        ("0 0 LW * *", "UTC"),
        ("0 9 * * 5L", "UTC"),
        ("0 9 * * 1#1", PARIS),
        ("0 9 1 * 1", PARIS),
        ("45 1 * * *", LORD_HOWE),
    ],
)
def test_systemd_reads_a_calendar_as_this_test_does(expression: str, zone: str) -> None:
    analyze = tool("systemd-analyze")
    for text in calendar_texts(fields_of(expression), zone):
        expected = sorted(read_calendar(text))
        said = told(
            analyze, "calendar", f"--base-time={YEAR - 1}-12-31 23:59:59 UTC",
            f"--iterations={len(expected)}", text,
        )  # fmt: skip
        found = re.findall(r"(?:elapse|Iter\. #\d+): \w+ (\S+ \S+) UTC", said)
        moments = [datetime.fromisoformat(each).replace(tzinfo=UTC).timestamp() for each in found]
        assert moments == expected, text


def test_cron_accepts_the_table(tmp_path: Path) -> None:
    program = tool("crontab")
    file = tmp_path / "table"
    starts = [Start(key, cron("30 2 1,15 * 1-5")) for key in HOSTILE]
    file.write_text(the_file(crontab(starts, Place("p", "/srv/p", ("penstock",)))))
    if "-T" not in subprocess.run([program, "-h"], capture_output=True, text=True).stderr:
        pytest.skip("this crontab can't check a table")
    told(program, "-T", str(file))
