"""`schedule:` of a source: `manual`, one policy, or a list of them, each with a name of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.errors import ConfigError
from penstock.settings.calendars import parse_calendar
from penstock.settings.document import Entry, join
from penstock.settings.hours import allowed_windows
from penstock.settings.pattern import pattern_of
from penstock.settings.restraints import window_of
from penstock.settings.section import Section, describe, parsed, text_of
from penstock.settings.units import (
    normalise_source,
    parse_cron,
    parse_duration,
    parse_offset,
    parse_timezone,
)
from penstock.settings.values import (
    SCHEDULED_KINDS,
    NearSettings,
    ScheduleSettings,
    SessionSettings,
    WatchSettings,
)
from penstock.settings.windows import Window

# Each policy by the key that names it, with the keys that belong to it alone.
POLICIES: dict[str, tuple[str, ...]] = {
    "every": ("jitter", "near"),
    "cron": (),
    "cadence": ("mode", "runs", "slowest", "fastest"),
    "session": (),
    "watch": ("debounce", "rescan"),
    "signal": (),
    "after": (),
}
COMMON_KEYS = (
    "name",
    "kind",
    "timezone",
    "windows",
    "blackouts",
    "during",
    "calendar",
    "missed",
    "catch_up",
    "overlap",
)
KEYS = (*POLICIES, *(key for keys in POLICIES.values() for key in keys), *COMMON_KEYS)
CADENCES = ("high", "medium", "low", "probe", "auto")
# What people call two of them.
CALLED = {"daily": "high", "weekly": "low"}
LADDER = ("low", "medium", "high")
MODES = ("apply", "suggest")
MISSED = ("once", "skip", "all")
OVERLAPS = ("skip", "queue", "replace")
DURING = ("in-session", "out-of-session")
SESSION_KEYS = ("calendar", "at", "offset")
NEAR_KEYS = ("window", "every")
# What was announced is forgotten a day after it.
LONGEST_NEAR_S = 86_400.0
USUAL = ScheduleSettings()
# What waits for something else than the time must not forget it because a run is active.
WAITING = ("watch", "signal", "after")
_WANTED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.:-]{0,99})(?: +of +(\S.*))?")


def read_schedules(source: Section) -> tuple[ScheduleSettings, ...]:
    """Every schedule of a source; none where it runs by hand only."""
    entry = source.get("schedule")
    if entry is None or entry.value == "manual":
        return ()
    written = entry.value if isinstance(entry.value, list) else [entry]
    path = join(source.path, "schedule")
    found: dict[str, ScheduleSettings] = {}
    for one in written:
        if one.value == "manual":
            raise one.error(path, "manual stands alone, not in a list of schedules")
        schedule = _read(one, path)
        if schedule.name in found:
            raise one.error(path, f"has two schedules named {schedule.name!r}; give each a name")
        found[schedule.name] = schedule
    return tuple(found.values())


def _read(entry: Entry, path: str) -> ScheduleSettings:
    if not isinstance(entry.value, dict):
        words = ", ".join(f"{{{name}: …}}" for name in POLICIES)
        raise entry.error(path, f"must be manual or one of {words}, not {describe(entry)}")
    section = Section(entry, path, KEYS)
    named = [name for name in POLICIES if section.get(name) is not None]
    if len(named) != 1:
        raise entry.error(path, f"needs one of {', '.join(POLICIES)}, and only one of them")
    [policy] = named
    _refuse_strangers(section, policy)
    return _common(section, _READERS[policy](section))


def _refuse_strangers(section: Section, policy: str) -> None:
    for other, keys in POLICIES.items():
        for key in keys:
            if other != policy and section.get(key) is not None:
                raise section.error(key, f"belongs to {other}, not to {policy}")
    if policy in WAITING:
        for key in ("missed", "catch_up"):
            if section.get(key) is not None:
                raise section.error(key, f"belongs to schedules by time: {policy} misses nothing")
    has_clock = policy == "cron" or any(section.get(key) for key in ("windows", "blackouts"))
    if section.get("timezone") is not None and not has_clock:
        raise section.error("timezone", "belongs to cron or to windows, and there are none")


def _common(section: Section, settings: ScheduleSettings) -> ScheduleSettings:
    zone = section.parsed("timezone", None, parse_timezone, "Europe/Paris")
    during = section.choice("during", "", ("", *DURING)) if section.get("during") else ""
    calendar = section.parsed("calendar", None, parse_calendar, "XNYS")
    if settings.session is not None:
        calendar = calendar or settings.session.calendar
    if during and calendar is None:
        raise section.error("during", "needs the calendar whose sessions are meant: calendar: XNYS")
    if calendar is not None and not during and settings.session is None:
        raise section.error("calendar", "belongs to during or session, and there is none")
    missed = section.choice("missed", USUAL.missed, MISSED)
    if section.get("catch_up") is not None and missed != "all":
        raise section.error("catch_up", "belongs to missed: all")
    windows, blackouts = _windows(section, "windows"), _windows(section, "blackouts")
    if blackouts and not allowed_windows(windows, blackouts):
        raise section.error("blackouts", "leave no time at all in which it may start")
    overlap = "queue" if settings.kind in WAITING else USUAL.overlap
    return replace(
        settings,
        name=section.text("name", USUAL.name),
        run_kind=section.choice("kind", SCHEDULED_KINDS[0], SCHEDULED_KINDS),
        timezone=zone.key if zone else USUAL.timezone,
        windows=windows,
        blackouts=blackouts,
        during=_literal(during),
        calendar=calendar,
        missed=_literal(missed),
        catch_up_per_min=section.number("catch_up", USUAL.catch_up_per_min, low=0.1, high=10_000),
        overlap=_literal(section.choice("overlap", overlap, OVERLAPS)),
    )


def _literal(word: str) -> Any:
    return word


def _windows(section: Section, name: str) -> tuple[Window, ...]:
    entry = section.get(name)
    if entry is None:
        return ()
    written = entry.value if isinstance(entry.value, list) else [entry]
    if not written:
        raise section.error(name, "must not be empty; leave it out")
    return tuple(window_of(one, join(section.path, name)) for one in written)


def _every(section: Section) -> ScheduleSettings:
    every_s = section.duration("every", 0.0, parse_duration, low=1.0)
    jitter_s = section.duration("jitter", 0.0, parse_duration)
    if jitter_s > every_s:
        raise section.error("jitter", "must not be longer than every")
    return ScheduleSettings(
        "every", every_s=every_s, jitter_s=jitter_s, near=_near(section, every_s)
    )


def _near(section: Section, every_s: float) -> NearSettings | None:
    if section.get("near") is None:
        return None
    near = section.section("near", NEAR_KEYS)
    for key in NEAR_KEYS:
        if near.get(key) is None:
            raise near.error(key, "is missing: near: {window: 10m, every: 5s}")
    found = NearSettings(
        near.duration("window", 0.0, parse_duration, low=1.0),
        near.duration("every", 0.0, parse_duration, low=1.0),
    )
    if found.window_s > LONGEST_NEAR_S:
        raise near.error("window", "must be at most 1d")
    if found.every_s >= every_s:
        raise near.error("every", "must be shorter than the schedule's own every")
    return found


def _cron(section: Section) -> ScheduleSettings:
    return ScheduleSettings("cron", cron=section.parsed("cron", "", parse_cron, '"0 2 * * *"'))


def _cadence(section: Section) -> ScheduleSettings:
    called = section.choice("cadence", "", (*CADENCES, *CALLED))
    cadence = CALLED.get(called, called)
    for key in POLICIES["cadence"]:
        if section.get(key) is not None and cadence != "auto":
            raise section.error(key, "belongs to cadence: auto")
    slowest = section.choice("slowest", USUAL.slowest, LADDER)
    fastest = section.choice("fastest", USUAL.fastest, LADDER)
    if LADDER.index(slowest) > LADDER.index(fastest):
        raise section.error("slowest", f"must not be quicker than fastest ({fastest})")
    return ScheduleSettings(
        "cadence",
        cadence=cadence,
        mode=_literal(section.choice("mode", USUAL.mode, MODES)),
        runs=section.whole("runs", USUAL.runs, high=1000),
        slowest=slowest,
        fastest=fastest,
    )


def _session(section: Section) -> ScheduleSettings:
    session = section.section("session", SESSION_KEYS)
    if session.get("calendar") is None:
        raise session.error("calendar", "is missing: session: {calendar: XNYS, at: open}")
    return ScheduleSettings(
        "session",
        session=SessionSettings(
            session.parsed("calendar", "", parse_calendar, "XNYS"),
            _literal(session.choice("at", "open", ("open", "close"))),
            session.parsed("offset", 0.0, parse_offset, "15m or -5m"),
        ),
    )


def _watch(section: Section) -> ScheduleSettings:
    usual = WatchSettings("")
    _refuse_pattern(section)
    return ScheduleSettings(
        "watch",
        watch=WatchSettings(
            section.text("watch", ""),
            section.duration("debounce", usual.debounce_s, parse_duration, low=0.01),
            section.duration("rescan", usual.rescan_s, parse_duration, low=1.0),
        ),
    )


def _refuse_pattern(section: Section) -> None:
    section.text("watch", "")
    section.parsed("watch", None, pattern_of, "./inbox/*.json")


def _signal(section: Section) -> ScheduleSettings:
    path = join(section.path, "signal")
    example = "the name of a signal, or NAME of SOURCE"
    names = [parsed(each, path, _wanted, example) for each in _names(section, "signal")]
    return ScheduleSettings("signal", signals=tuple(dict.fromkeys(names)))


def _wanted(text: str) -> str:
    found = _WANTED.fullmatch(text)
    if found is None:
        raise ConfigError("must be the name of a signal, or NAME of SOURCE")
    name, of = found.groups()
    return name if of is None else f"{name} of {normalise_source(of)}"


def _after(section: Section) -> ScheduleSettings:
    path = join(section.path, "after")
    names = [parsed(each, path, normalise_source, "acme.com") for each in _names(section, "after")]
    return ScheduleSettings("after", after=tuple(dict.fromkeys(names)))


def _names(section: Section, key: str) -> list[Entry]:
    entry = section.get(key)
    written = [] if entry is None else entry.value if isinstance(entry.value, list) else [entry]
    for each in written:
        text_of(each, join(section.path, key))
    if not written:
        raise section.error(key, "must not be empty")
    return written


_READERS: dict[str, Callable[[Section], ScheduleSettings]] = {
    "every": _every,
    "cron": _cron,
    "cadence": _cadence,
    "session": _session,
    "watch": _watch,
    "signal": _signal,
    "after": _after,
}
