"""What a store remembers between turns."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.gates.fair_shares import LAST, FairShares
from penstock.store.history import Marks
from penstock.store.turn.breaker_watch import Watch
from penstock.store.turn.watermarks import Floors


@dataclass(slots=True)
class Memory:
    """Losing it costs a moment of fairness or speed, no more."""

    sharing: FairShares = field(default_factory=FairShares)
    floors: Floors = field(default_factory=Floors)
    watch: Watch = field(default_factory=Watch)
    marks: Marks = field(default_factory=Marks)
    # How many lanes the last claim that read all of them has found; nothing is known of it at first.
    ring_length: int = LAST
