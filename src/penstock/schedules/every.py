"""Every: a fixed interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.errors import ConfigError

_UNITS = ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second"))


@dataclass(frozen=True, slots=True)
class Every:
    """Due one interval after the moment that was last due.

    Counted from that moment and not from the end of the run, so that slow runs do not drift. It
    measures real seconds: a day is 24 hours also when the clocks change.
    """

    every_s: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.every_s) and self.every_s > 0):
            raise ConfigError(f"an interval must be longer than nothing, not {self.every_s:g}s")

    def next_due(self, after: float) -> float | None:
        return after + self.every_s

    def words(self) -> str:
        for seconds, unit in _UNITS:
            if self.every_s >= seconds and self.every_s % seconds == 0:
                count = int(self.every_s // seconds)
                return f"every {unit}" if count == 1 else f"every {count} {unit}s"
        return f"every {self.every_s:g} seconds"
