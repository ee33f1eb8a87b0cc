"""What keeps a source or a host from being asked too much: its breaker, and its hours."""

from __future__ import annotations

from penstock.settings.document import Entry, join
from penstock.settings.section import Section, describe, parsed, text_of
from penstock.settings.units import parse_duration, parse_timezone
from penstock.settings.values import BreakerSettings
from penstock.settings.windows import Window, parse_window

BREAKER_KEYS = ("ratio", "at_least", "window", "open_for", "longest")


def read_breaker(owner: Section) -> BreakerSettings | None:
    """`breaker: off`, or a mapping of what differs from the usual."""
    entry = owner.get("breaker")
    if entry is not None and (entry.value is False or entry.value == "off"):
        return None
    if entry is not None and not isinstance(entry.value, dict):
        raise owner.error("breaker", f"must be off, or a mapping, not {describe(entry)}")
    usual, section = BreakerSettings(), owner.section("breaker", BREAKER_KEYS)
    open_for_s = section.duration("open_for", usual.open_for_s, parse_duration, low=1.0)
    longest_s = section.duration(
        "longest", max(usual.longest_s, open_for_s), parse_duration, low=1.0
    )
    if longest_s < open_for_s:
        raise section.error("longest", "must not be shorter than open_for")
    return BreakerSettings(
        ratio=section.number("ratio", usual.ratio, low=0.01, high=1),
        at_least=section.whole("at_least", usual.at_least, low=1, high=100_000),
        window_s=section.duration("window", usual.window_s, parse_duration, low=1.0),
        open_for_s=open_for_s,
        longest_s=longest_s,
    )


def read_windows(limits: Section) -> tuple[tuple[Window, ...], str]:
    """The windows, and the time zone whose clock they are by."""
    zone = limits.parsed("timezone", None, parse_timezone, "Europe/Paris")
    entry = limits.get("windows")
    if entry is None:
        if zone is not None:
            raise limits.error("timezone", "belongs to windows, and there are none")
        return (), "UTC"
    written = entry.value if isinstance(entry.value, list) else [entry]
    path = join(limits.path, "windows")
    if not written:
        raise limits.error("windows", "must not be empty; leave it out for all hours")
    found = [window_of(one, path) for one in written]
    return tuple(found), zone.key if zone else "UTC"


def window_of(entry: Entry, path: str) -> Window:
    text_of(entry, path)
    return parsed(entry, path, parse_window, "22:00-06:00")
