"""Words for people: times, durations, counts, and text from outside made harmless."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from penstock import clock, counting

count = counting.count
iso = clock.iso

# Ends of lines and other space, which a line of text has as one space.
_SPACE = re.compile("[\t-\r\x1c-\x1f\x85\u2028\u2029]+")
# Control characters could move the cursor or retitle the window; marks of direction could make a line read
# as something else; what has no width could hide a difference. Joiners (200c, 200d) are parts of words.
HARMFUL = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
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
    """The text on one line; what a terminal would obey, and what nobody would see, is shown by its number."""
    return HARMFUL.sub(escaped, _SPACE.sub(" ", text))


def escaped(found: re.Match[str]) -> str:
    """A character as JSON and Python write it."""
    code = ord(found[0])
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


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
    moment = clock.moment(at).astimezone()
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
