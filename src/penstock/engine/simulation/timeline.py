"""The timeline of a simulation: what is to be done when, on a clock that only jumps."""

from __future__ import annotations

import heapq
from collections.abc import Callable

Act = Callable[[], None]
# More steps than this, and the rest of the time is left out.
MOST_EVENTS = 20_000_000


class Timeline:
    """What is to come, in the order of time."""

    def __init__(self, begins_at: float, ends_at: float) -> None:
        self.now = begins_at
        self.ends_at = ends_at
        self.events = 0
        self._heap: list[tuple[float, int, int, Act]] = []
        self._order = 0

    def at(self, when: float, act: Act, rank: int = 0) -> None:
        """Do this then; of what is done at the same moment, what has a higher rank comes later."""
        self._order += 1
        heapq.heappush(self._heap, (when, rank, self._order, act))

    def run(self, after_each: Act) -> None:
        """Do it all, up to the end; `after_each` moment, not after each act."""
        heap, ends_at = self._heap, self.ends_at
        after_each()  # what is there already does not wait for something to happen
        while heap and self.events < MOST_EVENTS:
            at, _, _, act = heapq.heappop(heap)
            if at > ends_at:
                break
            if at > self.now:
                self.now = at
            self.events += 1
            act()
            if not heap or heap[0][0] > self.now:
                # What happens at one moment has all happened before anybody acts on it.
                after_each()

    @property
    def is_cut_short(self) -> bool:
        return self.events >= MOST_EVENTS
