"""Words for people: times, durations, counts, and text from outside made harmless."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

# Control characters could move the cursor or retitle the window; bidirectional overrides could make
# a line read as something else. None of them is wanted in a line of text.
_HARMFUL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+"
)
_END_OF_CALENDAR = datetime(9999, 12, 30, tzinfo=UTC).timestamp()
_STEPS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


class Brief(str):
    """Text that also has a shorter form, which a table uses when it is too wide."""

    __slots__ = ("brief",)
    brief: str

    def __new__(cls, full: str, brief: str) -> Brief:
        made = super().__new__(cls, full)
        made.brief = brief
        return made


def harmless(text: str) -> str:
    """The text on one line, without anything that a terminal would obey."""
    return _HARMFUL.sub(" ", text)


def harmless_lines(text: str) -> str:
    """The same for text that may have several lines."""
    return "\n".join(harmless(line) for line in text.split("\n"))


@dataclass(frozen=True, slots=True)
class Shortened:
    """Text of which a part is shown; `Output` masks secrets in the whole of it before it cuts."""

    text: str
    longest: int
    is_inside: bool = False


def shortened(text: str, longest: int) -> Shortened:
    return Shortened(text, longest)


def shortened_inside(text: str, longest: int) -> Shortened:
    """A key or URL: its end tells it from its neighbours, so its middle is left out."""
    return Shortened(text, longest, is_inside=True)


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def cut_inside(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head = (longest - 1) // 2
    return text[:head] + "…" + text[len(text) - (longest - 1 - head) :]


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    for index, (size, unit) in enumerate(_STEPS):
        if whole >= size:
            rest = whole % size
            lower, lower_unit = _STEPS[index + 1] if index + 1 < len(_STEPS) else (1, "")
            tail = f" {rest // lower} {lower_unit}" if rest >= lower and lower_unit else ""
            return f"{whole // size} {unit}{tail}"
    return "0 s"


def local_time(at: float | None) -> str:
    """A moment on the operator's own clock; empty when there is none. Short: `11-16 09:42`, `2025-03-04`."""
    if not at:
        return ""
    moment = _moment(at).astimezone()
    is_this_year = moment.year == datetime.now(moment.tzinfo).year
    return Brief(
        f"{moment:%Y-%m-%d %H:%M:%S}",
        f"{moment:%m-%d %H:%M}" if is_this_year else f"{moment:%Y-%m-%d}",
    )


def until(at: float, now: float) -> str:
    """`in 12 s (2025-03-04 15:04:05)`, or `now` when the moment has come. Short: `in 12 s`."""
    if at <= now:
        return "now"
    soon = f"in {duration(at - now)}"
    return Brief(f"{soon} ({local_time(at)})", soon)


def iso(at: float | None) -> str | None:
    """A moment for programs: UTC, to the millisecond; None when there is none."""
    return _moment(at).isoformat(timespec="milliseconds")[:-6] + "Z" if at else None


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 job`, `2,000 jobs`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _moment(at: float) -> datetime:
    # A step may ask to be run again in a million years; the calendar ends before that.
    return datetime.fromtimestamp(min(at, _END_OF_CALENDAR), UTC)
