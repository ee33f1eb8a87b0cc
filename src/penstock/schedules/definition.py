"""Definitions: a schedule as it is remembered, so that a change can be told from a restart.

What is as usual is left out: a key that a later version of Penstock adds changes no definition.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import msgspec

from penstock.schedules.auto import Standing, auto_words, first_level, is_auto
from penstock.schedules.schedule import schedule_from
from penstock.schedules.start_hours import is_bounded
from penstock.settings import ScheduleSettings
from penstock.settings.opening_hours import DAYS, WeeklyWindow

USUAL = ScheduleSettings()
# How the fields are called in penstock.yaml, where that differs.
_NAMES = {
    "every_s": "every",
    "jitter_s": "jitter",
    "run_kind": "kind",
    "signals": "signal",
    "catch_up_per_min": "catch_up",
    "kind": "policy",
    "is_external": "timers",
}


def definition_of(settings: ScheduleSettings) -> str:
    """Canonical JSON: equal for equal schedules, and for no others. The name is not part of it."""
    return msgspec.json.encode(_unusual(settings), order="deterministic").decode()


def settings_of(definition: str, name: str = USUAL.name) -> ScheduleSettings:
    """The schedule that was defined so."""
    found = msgspec.json.decode(definition)
    return msgspec.convert({**found, "name": name}, ScheduleSettings)


def policy_words(
    settings: ScheduleSettings, key: str, standing: Standing | None = None, proposed: str = ""
) -> str:
    """The whole policy as an operator would say it; of `cadence: auto`, as it stands now."""
    if is_auto(settings):
        standing = standing or Standing(first_level(settings))
        said = [auto_words(settings, key, standing, proposed)]
    else:
        said = [schedule_from(settings, key).words()]
    if settings.kind == "cron" and settings.timezone != USUAL.timezone:
        said = [said[0] if settings.timezone in said[0] else f"{said[0]} in {settings.timezone}"]
    if settings.run_kind != USUAL.run_kind:
        said.append(f"{settings.run_kind} runs")
    if is_bounded(settings):
        said.append(_hours(settings))
    if settings.missed == "all":
        said.append(f"catches up on every missed tick, {settings.catch_up_per_min:g} a minute")
    if settings.missed == "skip":
        said.append("skips missed ticks")
    if settings.overlap == "queue":
        said.append("waits for the run before it")
    if settings.overlap == "replace":
        said.append("replaces a run that has not ended")
    if settings.is_external:
        said.append("started by another scheduler")
    return ", ".join(said)


def changes(before: str, after: str) -> list[tuple[str, Any, Any]]:
    """What differs between two definitions: (key of penstock.yaml, before, after), None where not set."""
    old: dict[str, Any] = msgspec.json.decode(before) if before else {}
    new: dict[str, Any] = msgspec.json.decode(after) if after else {}
    return [
        (_NAMES.get(name, name), old.get(name), new.get(name))
        for name in (field.name for field in fields(ScheduleSettings))
        if old.get(name) != new.get(name)
    ]


def window_words(window: WeeklyWindow) -> str:
    days = "" if len(window.days) == 7 else f"{_days(window.days)} "
    return f"{days}{_minute(window.start)}-{_minute(window.end)}"


def _days(days: tuple[int, ...]) -> str:
    """`mon-fri` of days that follow each other, `mon,wed` of others."""
    first, last = min(days), max(days)
    if len(days) > 2 and len(days) == last - first + 1:
        return f"{DAYS[first]}-{DAYS[last]}"
    return ",".join(DAYS[day] for day in days)


def _unusual(settings: ScheduleSettings) -> dict[str, Any]:
    known: dict[str, Any] = msgspec.to_builtins(settings)
    usual: dict[str, Any] = msgspec.to_builtins(USUAL)
    return {name: value for name, value in known.items() if value != usual[name] and name != "name"}


def _hours(settings: ScheduleSettings) -> str:
    said = []
    if settings.windows:
        said.append("within " + " or ".join(window_words(each) for each in settings.windows))
    if settings.blackouts:
        said.append("not in " + " or ".join(window_words(each) for each in settings.blackouts))
    if said and settings.kind != "cron" and settings.timezone != USUAL.timezone:
        said[-1] += f" {settings.timezone}"
    if settings.during:
        place = "while {} is open" if settings.during == "in-session" else "while {} is shut"
        said.append(place.format(settings.calendar))
    return ", ".join(said)


def _minute(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
