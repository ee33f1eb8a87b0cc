"""Cells: which database of a project this is, and which sources it performs.

What a database says of a source is one row, and each change of it names the state that it leaves. A source is
where `gates.onboarding.is_here` says so of that row; while it moves, its origin keeps it until one commit
there says `left`.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.errors import Refused
from penstock.gates.onboarding import SourceState
from penstock.journal.event import Event
from penstock.store.database import Database
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.onboardings import begin_row


class CellRow(NamedTuple):
    """Where a source is, as this database knows it. `cell` is the one it goes to or came from."""

    state: str
    cell: str
    token: str
    changed_at: float


NOTHING_SAID = CellRow("", "", "", 0.0)


def name_once(db: Database, cell: str, number: int) -> bool:
    """Say which cell this is, of a database that is none yet."""
    return db.do("set_cell_if_unset", cell=cell, number=number) > 0


class Cells(Noun):
    """The verbs of cells, in one of their databases."""

    def states(self) -> dict[str, CellRow]:
        """Where sources are that were ever placed or moved, by their keys."""
        return {key: CellRow(*rest) for key, *rest in self._db.rows("cell_states")}

    def state(self, key: str) -> CellRow:
        return self.states().get(key, NOTHING_SAID)

    def identity(self) -> tuple[str, int]:
        """The name and number of this cell; ('', 0) in a project in one database."""
        found = self._db.rows("cell_identity")
        return (str(found[0][0]), int(found[0][1])) if found else ("", 0)

    def running(self, source_id: int) -> int:
        """How many of a source's jobs are running."""
        return int(self._db.value("running_of_source", source_id=source_id))

    def change(
        self,
        source_id: int,
        seen: CellRow,
        made: CellRow,
        begins: SourceState,
        event: Event | None,
        actor: str,
    ) -> bool:
        """Say where a source is, if it is still as it was seen; a claim that has looked is waited for."""
        with self._db.writing() as now:
            return change_row(self._db, now, source_id, seen, made, begins, event, actor)


def change_row(
    db: Database,
    now: float,
    source_id: int,
    seen: CellRow,
    made: CellRow,
    begins: SourceState,
    event: Event | None,
    actor: str,
) -> bool:
    """The same in the transaction of another verb. `begins` is the state of a source without a row."""
    db.lock_lanes([source_id])
    begin_row(db, source_id, begins, now, actor)
    is_moved = db.do(
        "move_cell_state",
        source_id=source_id,
        leaves=seen.state,
        known=seen.token,
        enters=made.state,
        cell=made.cell,
        token=made.token,
    )
    if is_moved and event is not None:
        ledger = Ledger(db, now)
        ledger.journal(event, source_id, actor=actor)
        ledger.write()
    return bool(is_moved)


def refuse_other_cell(found: tuple[str, int], cell: str, number: int, place: str) -> None:
    """Refuse a database that is another cell: each would perform the other's sources."""
    if found != (cell, number):
        name, its_number = found
        raise Refused(
            f"{place} is the cell {name} (number {its_number}), and this is {cell} (number {number})",
            "correct `cells:` in penstock.yaml: a cell keeps its database and its number",
            code="other_cell_database",
        )
