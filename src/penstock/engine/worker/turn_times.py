"""How long turns take, counted in memory and handed to the store now and then, beside the turn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from penstock.clock import Clock
from penstock.metrics.buckets import bucket
from penstock.metrics.line import Amount
from penstock.metrics.measures import SUMS

MEASURE = "turn_seconds"
# Each time is a transaction of its own. While nothing ends, nothing is written: it is kept for later.
EVERY_S = 10.0


@dataclass(eq=False, slots=True)
class TurnTimes:
    """Turns by how long they took, until somebody has written them."""

    clock: Clock
    _counts: Counter[str] = field(default_factory=Counter, init=False)
    _seconds: float = field(default=0.0, init=False)
    _due_at: float = field(default=float("-inf"), init=False)

    def note(self, began: float, *, has_ends: bool) -> bool:
        """A turn that began then is over; True if what was counted is to be written now."""
        now = self.clock.monotonic()
        self._counts[bucket(MEASURE, now - began)] += 1
        self._seconds += now - began
        return has_ends and now >= self._due_at

    def amounts(self) -> list[Amount]:
        counts: list[Amount] = [(MEASURE, label, n) for label, n in self._counts.items()]
        return [*counts, (SUMS[MEASURE], "", self._seconds)] if counts else []

    def written(self) -> None:
        self._counts.clear()
        self._seconds = 0.0
        self._due_at = self.clock.monotonic() + EVERY_S
