"""Events about cells: sources that are placed in a database, and move between databases."""

from __future__ import annotations

from typing import ClassVar

from penstock.counting import count
from penstock.journal.event import Event, Reasoned, with_reason
from penstock.journal.run_events import OPERATOR


class SourcePlaced(Reasoned, frozen=True, omit_defaults=True):
    """A source that has no history yet was placed in a cell; each of the two cells has this line."""

    kind: ClassVar[str] = "source.placed"
    by: ClassVar[str] = OPERATOR

    cell: str = ""

    def sentence(self) -> str:
        return with_reason(f"in cell {self.cell}", self.reason)


class SourceLeaving(Reasoned, frozen=True, omit_defaults=True):
    """A source is on its way to another cell: nothing of it starts, and what runs finishes."""

    kind: ClassVar[str] = "source.leaving"
    by: ClassVar[str] = OPERATOR

    cell: str = ""

    def sentence(self) -> str:
        return with_reason(f"to cell {self.cell}", self.reason)


class SourceStayed(Reasoned, frozen=True, omit_defaults=True):
    """A move was called off: the source is where it was."""

    kind: ClassVar[str] = "source.stayed"
    by: ClassVar[str] = OPERATOR

    cell: str = ""

    def sentence(self) -> str:
        return with_reason(f"not moved to cell {self.cell}", self.reason)


class SourceLeft(Reasoned, frozen=True, omit_defaults=True):
    """A source has left for another cell, with so many rows; from this line on it belongs to that cell."""

    kind: ClassVar[str] = "source.left"
    by: ClassVar[str] = OPERATOR

    cell: str = ""
    rows: int = 0

    def sentence(self) -> str:
        return with_reason(f"to cell {self.cell}, with {count(self.rows, 'row')}", self.reason)


class SourceArrived(Reasoned, frozen=True, omit_defaults=True):
    """A source has arrived from another cell, and is performed here from now on."""

    kind: ClassVar[str] = "source.arrived"
    by: ClassVar[str] = OPERATOR

    cell: str = ""

    def sentence(self) -> str:
        return with_reason(f"from cell {self.cell}", self.reason)


EVENTS: tuple[type[Event], ...] = (
    SourcePlaced,
    SourceLeaving,
    SourceStayed,
    SourceLeft,
    SourceArrived,
)
