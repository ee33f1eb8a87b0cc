"""Turns: which lane is the next to start something, when there is less room than work.

In earnest the lanes go round, and each starts as many jobs as its weight says. A place here is given several
jobs in a row, more to a long run than to a short one; so what a lane has started is counted in jobs, and the
one that has had the least by its weight is the next.
"""

from __future__ import annotations

from heapq import heappop, heappush

from penstock.engine.simulation.sources import SimulatedSource


class Turns:
    """The lanes that may have something to start."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, SimulatedSource]] = []
        self._present: set[int] = set()
        self._had = 0.0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, source: SimulatedSource, *, has_waited: bool = False) -> None:
        """It may have something. What it did not start while it had nothing is not saved up, unless it had
        something, and waited."""
        if source.number in self._present:
            return
        if source.had < self._had and not has_waited:
            source.had = self._had
        self._present.add(source.number)
        heappush(self._heap, (source.had, source.number, source))

    def next(self) -> SimulatedSource:
        had, number, source = heappop(self._heap)
        self._had = max(self._had, had)
        self._present.discard(number)
        return source
