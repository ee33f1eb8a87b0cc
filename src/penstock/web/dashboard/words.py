"""Times, lengths and amounts as the pages show them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec

_SPANS = ((86400.0, "d"), (3600.0, "h"), (60.0, "m"))
_SIZES = ("B", "kB", "MB", "GB", "TB")
# Of a value in a table, so much is shown; its own page has all of it.
LONGEST = 160


def span(seconds: float | None) -> str:
    """`0.4s`, `12s`, `3m 05s`, `2h 10m`, `4d 3h`."""
    if seconds is None:
        return "–"
    if seconds < 0:
        return "-" + span(-seconds)
    if seconds < 60:
        return f"{seconds:.1f}s" if seconds < 10 and seconds != int(seconds) else f"{seconds:.0f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"


def coarse(seconds: float) -> str:
    """The same in one unit: `4d`, `2h`, `3m`, `12s`."""
    for size, unit in _SPANS:
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"


def relative(at: float | None, now: float) -> str:
    """`3m ago`, `in 2h`."""
    if not at:
        return "–"
    if abs(at - now) < 1:
        return "now"
    return f"{coarse(now - at)} ago" if at < now else f"in {coarse(at - now)}"


def moment(at: float | None) -> str:
    """`2026-11-16 19:31:07 UTC`."""
    if not at:
        return "–"
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def stamp(at: float) -> str:
    """For the `datetime` of a `<time>`."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M}"


def seconds(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}"


def day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%a %d %b}"


def number(value: float | None) -> str:
    """`12,345`, `0.25`; `–` for none."""
    if value is None:
        return "–"
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) >= 0.01 else f"{value:.4f}"


def size(value: float | None) -> str:
    """`0 B`, `12 kB`, `3.4 MB`."""
    if value is None:
        return "–"
    index = 0
    while abs(value) >= 1000 and index < len(_SIZES) - 1:
        value, index = value / 1000, index + 1
    return (
        f"{value:.0f} {_SIZES[index]}"
        if value >= 10 or not index
        else f"{value:.1f} {_SIZES[index]}"
    )


def share(value: float | None) -> str:
    """`12 %` of a fraction."""
    if value is None:
        return "–"
    percent = 100.0 * value
    return f"{percent:.1f} %" if 0 < percent < 10 else f"{percent:.0f} %"


def brief(value: Any, longest: int = LONGEST) -> str:
    """A value in one line of a table."""
    text = value if isinstance(value, str) else compact(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def sentence(text: str) -> str:
    """An error's text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def compact(value: Any) -> str:
    """A value as JSON in one line."""
    return json.dumps(msgspec.to_builtins(value, str_keys=True), ensure_ascii=False)


def pretty(value: Any) -> str:
    """A value as JSON over several lines."""
    return json.dumps(msgspec.to_builtins(value, str_keys=True), ensure_ascii=False, indent=2)


def plain(state: str) -> str:
    """A state as part of a CSS class: letters and dashes alone."""
    return "".join(letter if letter.isalpha() else "-" for letter in state.lower()) or "none"
