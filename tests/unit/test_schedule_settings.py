"""`schedule:` of penstock.yaml: every policy is read, and every wrong input is named with its key."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.settings import ScheduleSettings, load_settings
from penstock.settings.opening_hours import parse_window
from penstock.settings.values import NearSettings, SessionSettings, WatchSettings

HEAD = "sources:\n  other: {pipeline: p:p}\n  acme.com:\n    pipeline: products:catalogue\n"
PLACE = "penstock.yaml:5: sources.acme.com.schedule"


def read(folder: Path, text: str) -> tuple[ScheduleSettings, ...]:
    (folder / "penstock.yaml").write_text(f"{HEAD}    schedule: {text}\n")
    return load_settings(folder, environ={}).sources["acme.com"].schedules


def problem(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(folder, text)
    assert "\n" not in caught.value.message
    said = caught.value.message.removeprefix(f"{folder}/")
    assert said.startswith(PLACE), said
    return said.removeprefix(PLACE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{every: 6h, jitter: 10m}", ScheduleSettings("every", every_s=21600.0, jitter_s=600.0)),
        (
            "{every: 60s, near: {window: 10m, every: 5s}}",
            ScheduleSettings("every", every_s=60.0, near=NearSettings(600.0, 5.0)),
        ),
        ('{cron: "0 2 * * *"}', ScheduleSettings("cron", cron="0 2 * * *")),
        ("{cadence: high}", ScheduleSettings("cadence", cadence="high")),
        (
            "{cadence: auto, mode: suggest}",
            ScheduleSettings("cadence", cadence="auto", mode="suggest"),
        ),
        ("{cadence: daily}", ScheduleSettings("cadence", cadence="high")),
        ("{cadence: weekly}", ScheduleSettings("cadence", cadence="low")),
        (
            "{cadence: auto, runs: 5, slowest: medium, fastest: medium}",
            ScheduleSettings("cadence", cadence="auto", runs=5, slowest="medium", fastest="medium"),
        ),
        ("{after: other, overlap: skip}", ScheduleSettings("after", after=("other",))),
        (
            "{session: {calendar: XNYS, at: close, offset: -15m}}",
            ScheduleSettings(
                "session", session=SessionSettings("XNYS", "close", -900.0), calendar="XNYS"
            ),
        ),
        (
            "{watch: './inbox/**/*.json', debounce: 5s, rescan: 2m}",
            ScheduleSettings(
                "watch", watch=WatchSettings("./inbox/**/*.json", 5.0, 120.0), overlap="queue"
            ),
        ),
        (
            "{signal: budget.reset}",
            ScheduleSettings("signal", signals=("budget.reset",), overlap="queue"),
        ),
        ("{signal: [a, b, a]}", ScheduleSettings("signal", signals=("a", "b"), overlap="queue")),
        ("{after: other}", ScheduleSettings("after", after=("other",), overlap="queue")),
        (
            "{every: 1h, windows: 22:00-06:00, blackouts: ['sat 00:00-24:00'], timezone: Europe/Paris}",
            ScheduleSettings(
                "every",
                every_s=3600.0,
                windows=(parse_window("22:00-06:00"),),
                blackouts=(parse_window("sat 00:00-24:00"),),
                timezone="Europe/Paris",
            ),
        ),
        (
            "{every: 1h, during: in-session, calendar: XNYS}",
            ScheduleSettings("every", every_s=3600.0, during="in-session", calendar="XNYS"),
        ),
        (
            "{every: 1h, missed: all, catch_up: 3, overlap: queue, kind: probe, name: fast}",
            ScheduleSettings(
                "every",
                every_s=3600.0,
                missed="all",
                catch_up_per_min=3.0,
                overlap="queue",
                run_kind="probe",
                name="fast",
            ),
        ),
    ],
)
def test_every_policy_is_read(tmp_path: Path, text: str, expected: ScheduleSettings) -> None:
    assert read(tmp_path, text) == (expected,)


@pytest.mark.parametrize("text", ["manual", "", "~"])
def test_what_runs_by_hand_has_no_schedule(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == ()


def test_a_source_may_have_several_with_kinds_of_their_own(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "[{cron: '@daily', kind: incremental}, {name: sunday, cron: '@weekly', kind: full}]",
    )
    assert [(each.name, each.run_kind) for each in found] == [
        ("main", "incremental"),
        ("sunday", "full"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("daily", ": must be manual or one of {every: …}"),
        ("7", ": must be manual or one of"),
        ("{}", ": needs one of every, cron, cadence, session, watch, signal, after, and only one"),
        ("{every: 1h, cadence: high}", ": needs one of every, cron"),
        ("{missed: once}", ": needs one of every, cron"),
        ("{evry: 1h}", ".evry: unknown key, did you mean 'every'?"),
        ("[{every: 1h}, {cron: '@daily'}]", ": has two schedules named 'main'; give each a name"),
        ("[manual]", ": manual stands alone"),
        ("{every: soon}", ".every: 'soon' is not a duration"),
        ("{every: 3600}", ".every: must be text such as 30s, not 3600"),
        ("{every: 500ms}", ".every: must be at least 1s"),
        ("{every: 1m, jitter: 2m}", ".jitter: must not be longer than every"),
        ("{cron: '@daily', jitter: 1m}", ".jitter: belongs to every, not to cron"),
        ("{every: 1m, near: 5s}", ".near: must be a mapping"),
        (
            "{every: 1m, near: {every: 5s}}",
            ".near.window: is missing: near: {window: 10m, every: 5s}",
        ),
        (
            "{every: 1m, near: {window: 5s}}",
            ".near.every: is missing: near: {window: 10m, every: 5s}",
        ),
        (
            "{every: 1m, near: {window: 1h, every: 1m}}",
            ".near.every: must be shorter than the schedule's own every",
        ),
        ("{every: 1m, near: {window: 2d, every: 5s}}", ".near.window: must be at most 1d"),
        ("{every: 1m, near: {windows: 1h}}", ".near.windows: unknown key, did you mean 'window'?"),
        ("{cron: '@daily', near: {window: 1m, every: 5s}}", ".near: belongs to every, not to cron"),
        ("{cadence: hgih}", ".cadence: must not be 'hgih', did you mean 'high'?"),
        ("{cadence: high, mode: suggest}", ".mode: belongs to cadence: auto"),
        ("{cadence: auto, mode: maybe}", ".mode: must not be 'maybe', known: apply, suggest"),
        ("{cadence: high, runs: 3}", ".runs: belongs to cadence: auto"),
        ("{cadence: auto, runs: 0}", ".runs: must be from 1 to 1000"),
        (
            "{cadence: auto, slowest: probe}",
            ".slowest: must not be 'probe', known: high, low, medium",
        ),
        (
            "{cadence: auto, slowest: high, fastest: low}",
            ".slowest: must not be quicker than fastest (low)",
        ),
        ("{every: 1h, mode: suggest}", ".mode: belongs to cadence, not to every"),
        ("{session: XNYS}", ".session: must be a mapping"),
        (
            "{session: {at: open}}",
            ".session.calendar: is missing: session: {calendar: XNYS, at: open}",
        ),
        ("{session: {calendar: XNYS, at: noon}}", ".session.at: must not be 'noon', did you mean"),
        ("{session: {calendar: XNYS, offset: soon}}", ".session.offset: 'soon' is not"),
        ("{session: {calender: XNYS}}", ".session.calender: unknown key, did you mean 'calendar'?"),
        (
            "{session: {calendar: XNYSE}}",
            ".session.calendar: 'XNYSE' is not a calendar of an exchange, did you mean 'XNYS'?",
        ),
        (
            "{session: {calendar: xlon}}",
            ".session.calendar: 'xlon' is not a calendar of an exchange, did",
        ),
        (
            "{every: 1h, during: in-session, calendar: Everywhere}",
            ".calendar: 'Everywhere' is not a calendar of an exchange, write it as XNYS, XLON or 24/7",
        ),
        ("{session: {calendar: 247}}", ".session.calendar: must be text such as XNYS, not 247"),
        ("{session: {calendar: XNYS}, timezone: UTC}", ".timezone: belongs to cron or to windows"),
        ("{watch: ''}", ".watch: must not be empty"),
        ("{watch: inbox/}", ".watch: 'inbox/' is a folder: write 'inbox/*' for what is in it"),
        ("{watch: 'a/*/../b'}", ".watch: 'a/*/../b' has '..' after a wildcard"),
        ("{watch: 'a/[z-a]'}", ".watch: 'a/[z-a]' is not a pattern of files: bad character range"),
        ("{watch: a, missed: all}", ".missed: belongs to schedules by time: watch misses nothing"),
        ("{signal: a, catch_up: 5}", ".catch_up: belongs to schedules by time"),
        ("{every: 1h, catch_up: 5}", ".catch_up: belongs to missed: all"),
        ("{after: othr}", ": there is no source 'othr', did you mean 'other'?"),
        ("{after: acme.com}", ": runs without end: acme.com waits for acme.com"),
        (
            "{every: 1h, windows: 9:00-10:00, blackouts: [8:00-9:30, 9:30-11:00]}",
            ".blackouts: leave no time at all in which it may start",
        ),
        ("[{every: 1h}, manual]", ": manual stands alone, not in a list of schedules"),
        ('{cron: "0 2 * *"}', ".cron: '0 2 * *' is not a cron expression: it needs five fields"),
        ('{cron: "0 24 * * *"}', ".cron: '0 24 * * *' is not a cron expression: its hour must be"),
        ("{watch: [a]}", ".watch: must be text, not a list"),
        ("{watch: a, debounce: 0s}", ".debounce: must be at least 0.01s"),
        ("{watch: a, rescan: 1ms}", ".rescan: must be at least 1s"),
        ("{every: 1h, debounce: 1s}", ".debounce: belongs to watch, not to every"),
        ("{signal: []}", ".signal: must not be empty"),
        ("{signal: [a, 7]}", ".signal: must be text, not 7"),
        ("{after: ''}", ".after: must not be empty"),
        ("{every: 1h, windows: []}", ".windows: must not be empty; leave it out"),
        ("{every: 1h, windows: noon}", ".windows: 'noon' is not a window"),
        ("{every: 1h, blackouts: [9:00-9:00]}", ".blackouts: '9:00-9:00' is an empty window"),
        (
            "{every: 1h, windows: 'mun 9:00-10:00'}",
            ".windows: 'mun 9:00-10:00' is not a window: mun",
        ),
        (
            "{every: 1h, timezone: UTC}",
            ".timezone: belongs to cron or to windows, and there are none",
        ),
        (
            "{every: 1h, windows: 9:00-17:00, timezone: Mars}",
            ".timezone: 'Mars' is not a time zone",
        ),
        ("{every: 1h, during: in-session}", ".during: needs the calendar whose sessions are meant"),
        (
            "{every: 1h, during: in-sesion, calendar: XNYS}",
            ".during: must not be 'in-sesion', did you mean 'in-session'?",
        ),
        (
            "{every: 1h, calendar: XNYS}",
            ".calendar: belongs to during or session, and there is none",
        ),
        ("{every: 1h, missed: never}", ".missed: must not be 'never', known: all, once, skip"),
        ("{every: 1h, missed: all, catch_up: 0}", ".catch_up: must be from 0.1 to 10000"),
        ("{every: 1h, missed: all, catch_up: fast}", ".catch_up: must be a number, not 'fast'"),
        ("{every: 1h, overlap: kill}", ".overlap: must not be 'kill', did you mean 'skip'?"),
        ("{every: 1h, kind: backfill}", ".kind: must not be 'backfill', did you mean 'full'?"),
        ("{every: 1h, name: ''}", ".name: must not be empty"),
        ('{every: 1h, name: "a\\nb"}', ".name: must be one line of printable text"),
    ],
)
def test_every_wrong_input_is_named(tmp_path: Path, text: str, expected: str) -> None:
    assert problem(tmp_path, text).startswith(expected)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("{session: {calendar: XNYS}}", "session.calendar"),
        ("{every: 1h, during: in-session, calendar: XNYS}", "calendar"),
    ],
)
def test_sessions_without_the_extra_say_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, key: str
) -> None:
    monkeypatch.setitem(sys.modules, "exchange_calendars", None)
    assert problem(tmp_path, text) == (
        f".{key}: sessions of an exchange need the extra `markets`: pip install 'penstock[markets]'"
    )


def test_a_known_calendar_is_taken_without_loading_what_knows_its_sessions(tmp_path: Path) -> None:
    read(tmp_path, "{session: {calendar: XNYS}}")
    words = (
        "import sys, penstock.settings; penstock.settings.load_settings(sys.argv[1], environ={}); "
    )
    words += "assert 'exchange_calendars' not in sys.modules"
    subprocess.run([sys.executable, "-c", words, str(tmp_path)], check=True)
