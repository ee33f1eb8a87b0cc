"""Types of keys that are written as text: durations, rates, sizes, zones, hours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from penstock.settings.calendars import parse_calendar
from penstock.settings.declaration import Keys, Reads, Schema, TextForm
from penstock.settings.document import Entry
from penstock.settings.opening_hours import WeeklyWindow, parse_window
from penstock.settings.section import describe, parsed, text_of
from penstock.settings.units import (
    parse_cron,
    parse_duration,
    parse_offset,
    parse_rate,
    parse_size,
    parse_timezone,
)

Ref = Callable[[type[Keys]], Schema]

# Text with a variable in it may stand for anything.
VARIABLE = r"\$\{"
_NUMBER = r"[0-9]{1,15}(\.[0-9]{1,9})?"
_DURATION = rf"{_NUMBER}\s?(ms|s|m|h|d)"


def _whole_match(pattern: str) -> str:
    return rf"^\s*{pattern}\s*$"


def duration_text(seconds: float) -> str:
    """As the file would have it: `60s`, `30m`, `1d`."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    for unit, size in {"d": 86400.0, "h": 3600.0, "m": 60.0}.items():
        if seconds >= max(size, 120) and (seconds / size).is_integer():
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


def size_text(size: int) -> str:
    for unit, worth in {"GB": 1000**3, "MB": 1000**2, "KB": 1000}.items():
        if size >= worth and size % worth == 0:
            return f"{size // worth}{unit}"
    return f"{size}B"


def _zone(text: str) -> str:
    return parse_timezone(text).key


_RATE = TextForm(parse_rate, "60/m", _whole_match(rf"{_NUMBER}\s?/\s?[smhd]"))
_SIZE = TextForm(
    parse_size, "16MB", _whole_match(rf"{_NUMBER}\s?([kKmMgG]([iI])?)?[bB]"), size_text
)

Duration = Annotated[float, TextForm(parse_duration, "30s", _whole_match(_DURATION), duration_text)]
Offset = Annotated[
    float, TextForm(parse_offset, "15m or -5m", _whole_match(rf"[-+]?\s*{_DURATION}"))
]
Rate = Annotated[float, _RATE]
HostRate = Annotated[float, replace(_RATE, example="30/m")]
Size = Annotated[int, _SIZE]
SmallSize = Annotated[int, replace(_SIZE, example="256KB")]
Zone = Annotated[str, TextForm(_zone, "Europe/Paris")]
Calendar = Annotated[str, TextForm(parse_calendar, "XNYS")]
Cron = Annotated[str, TextForm(parse_cron, '"0 2 * * *"')]


def variable() -> Schema:
    return {"type": "string", "pattern": VARIABLE}


def text_schema(_: Ref) -> Schema:
    return {"type": "string", "minLength": 1}


def texts_schema(_: Ref) -> Schema:
    return {"type": "array", "items": {"type": "string", "minLength": 1}}


def by_name(schema: Schema) -> Schema:
    """A mapping whose names are the user's own."""
    return {"type": "object", "additionalProperties": schema}


def texts_by_name(_: Ref) -> Schema:
    return by_name({"type": "string", "minLength": 1})


def one_or_many(pattern: str = "", least: int = 1) -> Schema:
    """Text, or a list of texts."""
    text: Schema = {"type": "string"}
    if pattern:
        text["pattern"] = f"{pattern}|{VARIABLE}"
    return {"anyOf": [text, {"type": "array", "items": text, "minItems": least}]}


def window_of(entry: Entry, path: str) -> WeeklyWindow:
    text_of(entry, path)
    return parsed(entry, path, parse_window, "22:00-06:00")


def _read_windows(hint: str, entry: Entry, path: str) -> tuple[WeeklyWindow, ...]:
    written = entry.value if isinstance(entry.value, list) else [entry]
    if not written:
        raise entry.error(path, f"must not be empty; {hint}")
    return tuple(window_of(one, path) for one in written)


_WINDOW = (
    r"^\s*([A-Za-z]{3}([-,][A-Za-z]{3})*\s+)?[0-9]{1,2}:[0-9]{2}\s?-\s?[0-9]{1,2}:[0-9]{2}\s*$"
)


def hours(hint: str) -> Reads:
    """Hours of the week: one window, or a list of them; the hint says what to do instead of an empty one."""
    return Reads(partial(_read_windows, hint), lambda _: one_or_many(_WINDOW))


def read_listed(entry: Entry, path: str) -> list[Entry]:
    if not isinstance(entry.value, list):
        raise entry.error(path, f"must be a list, not {describe(entry)}")
    return entry.value


def read_names(entry: Entry, path: str, noun: str, read: Callable[[Entry, str], Any]) -> Any:
    """A list of which each is read alone."""
    if not isinstance(entry.value, list):
        raise entry.error(path, f"must be a list of {noun}, not {describe(entry)}")
    return tuple(read(inner, path) for inner in entry.value)
