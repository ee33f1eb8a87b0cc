"""How far somebody has read the journal, so that each line is read once, also after a kill or in a copy.

On a server, ids become visible out of order: a transaction takes its ids before it ends. Ids that had no line
at their turn are holes. A hole is looked at again until its line is there, or until every transaction has
ended that was under way when it was found: then its ids were given back, and no line will have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from penstock.metrics.recovery import FoldMemory
from penstock.store.database import Database

# Nobody who takes an id has a number as a transaction long after that, and nobody writes for an hour.
SETTLED_S = 10.0
FORGOTTEN_S = 3600.0

# First id, last id, the transaction that came next when it was found, and when that was.
Hole = tuple[int, int, int, float]


class Position(msgspec.Struct, frozen=True):
    """All lines up to `line` were read, but those in holes. `version` counts how often it has moved.

    `memory` is what folding them has to remember.
    """

    version: int = 0
    line: int = 0
    holes: list[Hole] = []
    at: float = 0.0
    memory: FoldMemory = msgspec.field(default_factory=FoldMemory)

    def is_at(self, other: Position) -> bool:
        return (self.line, self.holes) == (other.line, other.holes)

    @property
    def whole_until(self) -> int:
        """The last line up to which nothing is left to be read."""
        return min([self.line, *(first - 1 for first, *_ in self.holes)])


def read_position(db: Database) -> Position:
    """How far the journal is summed."""
    found = db.json("rollup_position")
    # Keys of JSON objects are text, those of the memory are numbers.
    return Position() if found is None else msgspec.convert(found, Position, strict=False)


def holes_after(
    holes: Sequence[Hole],
    gaps: Iterable[tuple[int, int]],
    late: Sequence[int],
    oldest_tx: int,
    next_tx: int,
    now: float,
) -> list[Hole]:
    """The holes that are left when some lines were found `late`, and `gaps` were found."""
    left: list[Hole] = []
    for first, last, tx, since in holes:
        is_settled = oldest_tx >= tx and now - since >= SETTLED_S
        if not is_settled and now - since < FORGOTTEN_S:
            inside = [each for each in late if first <= each <= last]
            left += [(a, b, tx, since) for a, b in _without(first, last, inside)]
    if next_tx:
        left += [(first, last, next_tx, now) for first, last in gaps]
    return left


def _without(first: int, last: int, ids: Iterable[int]) -> Iterable[tuple[int, int]]:
    """A range without some of its ids: the ranges that are left, in order."""
    for each in sorted(ids):
        if each > first:
            yield first, each - 1
        first = each + 1
    if first <= last:
        yield first, last
