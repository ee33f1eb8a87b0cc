"""Every: a fixed interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.errors import ConfigError
from penstock.schedules.spread import spread

_UNITS = ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second"))


@dataclass(frozen=True, slots=True)
class Every:
    """Due one interval after the moment that was last due.

    Counted from that moment and not from the end of the run, so that slow runs do not drift. It
    measures real seconds: a day is 24 hours also when the clocks change. With `jitter_s` each moment
    comes up to so much later, by chance that is the same whenever it is asked.
    """

    every_s: float
    jitter_s: float = 0.0
    key: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.every_s) and self.every_s > 0):
            raise ConfigError(f"an interval must be longer than nothing, not {self.every_s:g}s")
        if not 0 <= self.jitter_s <= self.every_s:
            raise ConfigError("jitter can't be longer than the interval it is added to")

    def next_due(self, after: float) -> float | None:
        if not self.jitter_s:
            return after + self.every_s
        return self._on_the_grid(after)

    def _on_the_grid(self, after: float) -> float:
        """Each interval's own moment: jitter that was added to the last due one would add up."""
        number = math.floor((after - self.jitter_s) / self.every_s)
        while (due := self._moment(number)) <= after:
            number += 1
        return due

    def _moment(self, number: int) -> float:
        return number * self.every_s + spread(self.key, self.jitter_s, f"jitter {number}")

    def words(self) -> str:
        said = f"every {interval_words(self.every_s)}"
        if not self.jitter_s:
            return said
        late = interval_words(self.jitter_s)
        return f"{said}, up to {late if late[0].isdigit() else f'1 {late}'} later"


def interval_words(interval_s: float) -> str:
    """How long it is, as it is said after "every"."""
    for seconds, unit in _UNITS:
        if interval_s >= seconds and interval_s % seconds == 0:
            count = int(interval_s // seconds)
            return unit if count == 1 else f"{count} {unit}s"
    return f"{interval_s:g} seconds"
