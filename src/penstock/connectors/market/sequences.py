"""Sequences: events of one symbol, put in order by their numbers; what is missing among them is a gap.

An event that comes before one that is missing is held, until that one comes, too many are held, or the wait
was long enough. Then what is missing is a gap, and the events go on behind it. The very first events are held
in the same way, because earlier ones may come after them. Pure: time is handed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.connectors.market.events import Event

MOST_GAPS = 1000


@dataclass(frozen=True, slots=True)
class Gap:
    """Sequences that did not come, and the moments of the events before and after them."""

    symbol: str
    first: int
    last: int
    start_ns: int
    end_ns: int


@dataclass(slots=True)
class Sequencer:
    """The order of one symbol's events. `last` is the sequence of the last that was let through."""

    symbol: str
    reorder: int = 100
    patience_s: float = 2.0
    last: int | None = None
    last_ns: int = 0
    duplicates: int = 0
    restarts: int = 0
    _held: dict[int, tuple[Event, float]] = field(default_factory=dict)
    _missing: list[Gap] = field(default_factory=list)

    def take(self, event: Event, now: float) -> tuple[list[Event], list[Gap]]:
        """The events that may go on now, in order, and the gaps before them."""
        number = event.sequence
        if number is None:
            self.last_ns = max(self.last_ns, event.at_ns)
            return [event], []
        if self.last is not None and number <= self.last:
            return self._old(event, number), []
        if number in self._held:
            self.duplicates += 1
            return [], []
        self._held[number] = (event, now)
        return self._ready(now)

    def due(self, now: float) -> tuple[list[Event], list[Gap]]:
        """What was waited for long enough."""
        return self._ready(now)

    @property
    def waits(self) -> bool:
        return bool(self._held)

    def _old(self, event: Event, number: int) -> list[Event]:
        """What is behind: late, the first of a sequence that began again, or a duplicate."""
        for place, gap in enumerate(self._missing):
            if gap.first <= number <= gap.last:
                self._missing[place : place + 1] = _without(gap, number)
                return [event]
        if event.at_ns > self.last_ns:
            self.restarts += 1
            self._held.clear()
            self._missing.clear()
            return self._passed(event)
        self.duplicates += 1
        return []

    def _ready(self, now: float) -> tuple[list[Event], list[Gap]]:
        events, gaps = self._following(), []
        while self._held and self._is_enough(now):
            first = min(self._held)
            if self.last is not None:
                gaps.append(self._gap_before(first))
            self.last = first - 1
            events += self._following()
        return events, gaps

    def _following(self) -> list[Event]:
        found: list[Event] = []
        while self.last is not None and self.last + 1 in self._held:
            event, _ = self._held.pop(self.last + 1)
            found += self._passed(event)
        return found

    def _passed(self, event: Event) -> list[Event]:
        self.last = event.sequence
        self.last_ns = max(self.last_ns, event.at_ns)
        return [event]

    def _is_enough(self, now: float) -> bool:
        oldest = min(came_at for _, came_at in self._held.values())
        return len(self._held) > self.reorder or now - oldest >= self.patience_s

    def _gap_before(self, first: int) -> Gap:
        event, _ = self._held[first]
        low, high = sorted((self.last_ns, event.at_ns))
        gap = Gap(self.symbol, (self.last or 0) + 1, first - 1, low, high)
        self._missing = [*self._missing[-MOST_GAPS:], gap]
        return gap


def _without(gap: Gap, number: int) -> list[Gap]:
    """What is left of a gap."""
    parts = ((gap.first, number - 1), (number + 1, gap.last))
    return [
        Gap(gap.symbol, first, last, gap.start_ns, gap.end_ns)
        for first, last in parts
        if first <= last
    ]


def missing_of(wanted: Sequence[Sequence[int]], seen: Iterable[int]) -> list[tuple[int, int]]:
    """What of these ranges has not been seen, as ranges."""
    known = sorted(set(seen))
    holes: list[tuple[int, int]] = []
    for first, last in wanted:
        at = first
        for number in known:
            if number < at or number > last:
                continue
            if number > at:
                holes.append((at, number - 1))
            at = number + 1
        if at <= last:
            holes.append((at, last))
    return holes
