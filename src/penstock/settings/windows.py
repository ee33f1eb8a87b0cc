"""The hours of the week in which a source or host may be touched, as they are written in penstock.yaml."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import ConfigError, nearest

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60
_WINDOW = re.compile(
    r"(?:(?P<days>[a-z]{3}(?:[-,][a-z]{3})*)\s+)?(?P<start>\d{1,2}:\d{2})\s?-\s?(?P<end>\d{1,2}:\d{2})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Window:
    """From one minute of the day to another; what ends before it begins ends on the next day."""

    days: tuple[int, ...]
    start: int
    end: int

    @property
    def wraps(self) -> bool:
        return self.end <= self.start


def parse_window(text: str) -> Window:
    """`22:00-06:00` on every day, `sat-sun 00:00-24:00` or `mon,wed 09:00-17:30` on some."""
    match = _WINDOW.fullmatch(text.strip())
    if match is None:
        raise ConfigError(
            f"{text!r} is not a window: write it as 22:00-06:00 or sat-sun 00:00-24:00"
        )
    start, end = _minute(match["start"], text), _minute(match["end"], text)
    if start in (DAY_MINUTES, end):
        raise ConfigError(f"{text!r} is an empty window: the whole day is 00:00-24:00")
    return Window(_days(match["days"], text), start, end)


def _minute(text: str, window: str) -> int:
    hour, minute = map(int, text.split(":"))
    if minute > 59 or hour * 60 + minute > DAY_MINUTES:
        raise ConfigError(f"{window!r} is not a window: {text} is no time of the day")
    return hour * 60 + minute


def _days(text: str | None, window: str) -> tuple[int, ...]:
    if text is None:
        return tuple(range(7))
    days: set[int] = set()
    for part in text.lower().split(","):
        first, *more = (_day(word, window) for word in part.split("-"))
        if len(more) > 1:
            raise ConfigError(f"{window!r} is not a window: write its days as mon-fri or sat,sun")
        last = more[0] if more else first
        days.update((first + step) % 7 for step in range((last - first) % 7 + 1))
    return tuple(sorted(days))


def _day(word: str, window: str) -> int:
    if word not in DAYS:
        raise ConfigError(f"{window!r} is not a window: {word} is no day, {nearest(word, DAYS)}")
    return DAYS.index(word)
