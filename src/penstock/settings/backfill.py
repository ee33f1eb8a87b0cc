"""How a source's past is fetched: what it is cut into, for which partitions, and on which days."""

from __future__ import annotations

from datetime import date

from penstock.errors import ConfigError
from penstock.settings.document import Entry, join
from penstock.settings.section import Section, describe, parsed, text_of
from penstock.settings.units import parse_duration, parse_timezone
from penstock.settings.values import BackfillSettings

BACKFILL_KEYS = (
    "window",
    "partitions",
    "share",
    "calls_per_unit",
    "calendar",
    "holidays",
    "timezone",
)
CALENDARS = ("always", "weekdays")


def read_backfill(source: Section) -> BackfillSettings | None:
    """None where the file doesn't say: such a source can't be backfilled."""
    if source.get("backfill") is None:
        return None
    usual, section = BackfillSettings(), source.section("backfill", BACKFILL_KEYS)
    zone = section.parsed("timezone", None, parse_timezone, "Europe/Paris")
    return BackfillSettings(
        window_s=section.duration("window", usual.window_s, parse_duration, low=1.0),
        partitions=_texts(section, "partitions") or usual.partitions,
        share=section.number("share", usual.share, low=0.01, high=1),
        calls_per_unit=section.number("calls_per_unit", usual.calls_per_unit, low=0, high=1e6),
        calendar=section.choice("calendar", usual.calendar, CALENDARS),
        holidays=_holidays(section),
        timezone=zone.key if zone else usual.timezone,
    )


def _holidays(section: Section) -> tuple[str, ...]:
    _texts(section, "holidays")
    path = join(section.path, "holidays")
    return tuple(parsed(each, path, _day, "2026-12-25") for each in _listed(section, "holidays"))


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ConfigError(f"has {text!r}: write days as 2026-12-25") from None


def _listed(section: Section, name: str) -> list[Entry]:
    entry = section.get(name)
    if entry is None:
        return []
    if not isinstance(entry.value, list):
        raise section.error(name, f"must be a list, not {describe(entry)}")
    return entry.value


def _texts(section: Section, name: str) -> tuple[str, ...]:
    found = tuple(text_of(each, join(section.path, name)) for each in _listed(section, name))
    if len(set(found)) < len(found):
        raise section.error(name, "has one of them twice")
    return found
