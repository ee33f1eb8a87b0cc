"""How much one turn may write: a transaction that is too long keeps the worker's own beat from the disk."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.jobs.effects import MOST_EFFECTS
from penstock.jobs.outcome import Flush, Settlement


def that_fit(ends: Sequence[Settlement | Flush]) -> int:
    """How many of these ends, in their order, one transaction may hold; at least one, if there is any."""
    weight = 0
    for many, end in enumerate(ends, start=1):
        weight += end.effects.weight
        if weight >= MOST_EFFECTS:
            return many
    return len(ends)
