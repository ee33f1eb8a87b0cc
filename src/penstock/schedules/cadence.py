"""Cadence: how often a source is worth looking at, by its class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from penstock.schedules.spread import spread

CadenceClass = Literal["high", "medium", "low", "probe"]
CLASSES: tuple[CadenceClass, ...] = get_args(CadenceClass)

DAY_S = 86_400.0
INTERVAL_S: dict[CadenceClass, float] = {
    "high": DAY_S,
    "medium": 2.5 * DAY_S,
    "low": 7 * DAY_S,
    "probe": 2 * DAY_S,
}
_WORDS: dict[CadenceClass, str] = {
    "high": "daily",
    "medium": "every 2 to 3 days",
    "low": "weekly",
    "probe": "a probe every 2 days",
}


@dataclass(frozen=True, slots=True)
class Cadence:
    """Due once in each interval of the class, at a moment of its own: a thousand daily sources are
    spread over the day, and one that changes its class keeps the moments of the new one."""

    level: CadenceClass
    key: str

    def next_due(self, after: float) -> float | None:
        every_s = INTERVAL_S[self.level]
        offset = spread(self.key, every_s, "cadence")
        due = offset + (math.floor((after - offset) / every_s) + 1) * every_s
        # The sum may be rounded to the moment itself.
        return due if due > after else due + every_s

    def words(self) -> str:
        return f"{_WORDS[self.level]} ({self.level})"
