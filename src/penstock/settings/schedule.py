"""`schedule:` of a source: `manual`, one policy, or a list of them, each with a name of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.settings.document import Entry, join
from penstock.settings.section import Section, describe
from penstock.settings.units import parse_cron, parse_duration, parse_timezone
from penstock.settings.values import SCHEDULED_KINDS, ScheduleSettings

COMMON_KEYS = ("name", "kind")
# Each policy by the key that names it, with the keys that belong to it.
POLICIES: dict[str, tuple[str, ...]] = {"every": (), "cron": ("timezone",)}


def read_schedules(source: Section) -> tuple[ScheduleSettings, ...]:
    """Every schedule of a source; none where it runs by hand only."""
    entry = source.get("schedule")
    if entry is None or entry.value == "manual":
        return ()
    written = entry.value if isinstance(entry.value, list) else [entry]
    path = join(source.path, "schedule")
    found: dict[str, ScheduleSettings] = {}
    for number, one in enumerate(written):
        schedule = _read(one, path)
        if schedule.name in found:
            raise one.error(path, f"has two schedules named {schedule.name!r}; give each a name")
        if len(written) > 1 and number and schedule.name == ScheduleSettings().name:
            raise one.error(path, "needs a name for each schedule after the first")
        found[schedule.name] = schedule
    return tuple(found.values())


def _read(entry: Entry, path: str) -> ScheduleSettings:
    if not isinstance(entry.value, dict):
        problem = f"must be manual, {{every: 6h}} or {{cron: …}}, not {describe(entry)}"
        raise entry.error(path, problem)
    known = dict.fromkeys(
        (*POLICIES, *COMMON_KEYS, *(k for keys in POLICIES.values() for k in keys))
    )
    section = Section(entry, path, tuple(known))
    named = [name for name in POLICIES if section.get(name) is not None]
    if len(named) != 1:
        words = ", ".join(POLICIES)
        raise entry.error(path, f"needs one of {words}, and only one of them")
    [policy] = named
    for other, keys in POLICIES.items():
        for key in keys:
            if section.get(key) is not None and key not in POLICIES[policy]:
                raise section.error(key, f"belongs to {other}, not to {policy}")
    settings = _READERS[policy](section)
    return replace(
        settings,
        name=section.text("name", settings.name),
        run_kind=section.choice("kind", SCHEDULED_KINDS[0], SCHEDULED_KINDS),
    )


def _every(section: Section) -> ScheduleSettings:
    return ScheduleSettings(
        "every", every_s=section.duration("every", 0.0, parse_duration, low=1.0)
    )


def _cron(section: Section) -> ScheduleSettings:
    zone = section.parsed("timezone", None, parse_timezone, "Europe/Paris")
    cron = section.parsed("cron", "", parse_cron, '"0 2 * * *"')
    return ScheduleSettings("cron", cron=cron, timezone=zone.key if zone else "UTC")


_READERS: dict[str, Callable[[Section], ScheduleSettings]] = {"every": _every, "cron": _cron}
