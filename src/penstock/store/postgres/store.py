"""The Postgres store: one database that many hosts share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.clock import Clock
from penstock.errors import Refused, Remedy, StoreLocked
from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.jobs.outcome import Flush, Settlement
from penstock.settings.cells import IDS_PER_CELL
from penstock.store.cells import name_once, refuse_other_cell
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.postgres.restraint import REST, halved, is_called_for
from penstock.store.snapshots import Kept
from penstock.store.store import Store
from penstock.store.turn.turn import Turn, take_turn
from penstock.store.upkeep import Keep, Upkeep

if TYPE_CHECKING:
    from penstock.store.postgres.source_rows import SourceRows
    from penstock.store.sql_interface import SqlInterface

# For so long after a lock was waited for in vain, it is looked which runs somebody has locked.
WARY_S = 30.0
FOLD_COLLECTIONS = 10_000
FOLD_RUNS = 1000


class NoReserve:
    """Space is the server's business."""

    def hold(self) -> bool:
        return True

    def release(self) -> None:
        return None


class PostgresUpkeep(Upkeep):
    """Also folds what was tallied beside the counters."""

    def prune(self, keep: Keep, limit: int = 1000) -> int:
        dropped = super().prune(keep, limit)
        with self._db.writing():
            self._db.do("fold_collections", limit=FOLD_COLLECTIONS)
        return dropped


class PostgresStore(Store):
    """Penstock in one Postgres database. `time` replaces the database's clock, for tests."""

    _db: PostgresDatabase
    is_shared = True

    def __init__(self, url: str, clock: Clock, *, time: Clock | None = None) -> None:
        super().__init__(PostgresDatabase(url, clock, time=time), NoReserve())
        self.upkeep = PostgresUpkeep(self._db, self._memory.marks)
        self._wary_until = float("-inf")

    @property
    def name(self) -> str:
        return f"postgresql://{self._db.place}"

    def close(self) -> None:
        self._db.close()

    def give_up(self) -> None:
        self._db.give_up()

    def claim_cell(self, cell: str, number: int, place: str) -> None:
        from penstock.store.postgres.source_rows import begin_ids_at

        found = self.cells.identity()
        if not found[0]:
            with self._db.writing():
                if number and self._db.value("has_runs"):
                    raise Refused(
                        f"{place} holds runs already: their ids could be those of another cell",
                        f"give the cell {cell} a database or a schema that holds none",
                        code="store_not_empty",
                    )
                if name_once(self._db, cell, number) and number:
                    begin_ids_at(self._db, number * IDS_PER_CELL)
            found = self.cells.identity()
        refuse_other_cell(found, cell, number, place)

    def source_rows(self, key: str) -> SourceRows:
        from penstock.store.postgres.source_rows import SourceRows

        self.sources.ensure([key])
        return SourceRows(self._db, key)

    def hurried(self, patience_s: float) -> AbstractContextManager[None]:
        """While this lasts, a call that is not answered for so long has failed; the next connects anew."""
        return self._db.hurried(patience_s)

    def reopen(self) -> None:
        """Make the connection anew."""
        self._db.reopen()

    def turn(
        self,
        worker: str,
        ends: Sequence[Settlement | Flush],
        capacity: Capacity,
        limits: Mapping[int, LaneLimits],
        kept: Sequence[Kept] = (),
    ) -> Turn:
        """Settle what ended, then claim what may start: durable when it returns.

        An end whose attempt no longer owns its job is dropped with all its effects and listed as lost.
        A worker that was buried settles nothing and is given nothing. Ends whose run somebody else keeps
        locked are postponed: the worker offers them again.
        """
        postponed = self._to_postpone(ends)
        fit = [end for end in ends if end.job_id not in postponed] if postponed else ends
        try:
            turn = self._take_turn(worker, fit, capacity, limits, kept)
        except StoreLocked:
            self._wary_until = self._db.monotonic() + WARY_S
            raise
        return replace(turn, postponed=postponed) if postponed else turn

    def _to_postpone(self, ends: Sequence[Settlement | Flush]) -> frozenset[int]:
        """Jobs whose ends would wait for a lock that somebody keeps; asked for after one was waited for."""
        db = self._db
        db.avoided = frozenset()
        if db.monotonic() >= self._wary_until:
            return frozenset()
        db.avoided = db.locked_elsewhere()
        if not db.avoided:
            return frozenset()
        self._wary_until = db.monotonic() + WARY_S
        return frozenset(db.jobs_of_runs({end.job_id for end in ends}, db.avoided))

    def _take_turn(
        self,
        worker: str,
        ends: Sequence[Settlement | Flush],
        capacity: Capacity,
        limits: Mapping[int, LaneLimits],
        kept: Sequence[Kept],
    ) -> Turn:
        db, memory = self._db, self._memory
        if not is_called_for(db, worker):
            return take_turn(db, memory, worker, ends, capacity, limits, kept)
        began, db.has_locked = db.monotonic(), bool(ends)
        turn = take_turn(db, memory, worker, ends, capacity, halved(limits), kept)
        return replace(turn, rest_s=REST * (db.monotonic() - began) if db.has_locked else 0.0)

    def has_changed(self) -> bool:
        """Whether somebody has given a hint that there is work."""
        return self._db.hints.has_come()

    @property
    def listener(self) -> int | None:
        return self._db.hints.listener

    def tidy(self) -> None:
        """Put what was tallied of runs that have ended into their counters."""
        self._db.fold_ended_runs(FOLD_RUNS)

    def sql_interface(self) -> SqlInterface:
        from penstock.store.postgres.sql_interface import PostgresInterface
        from penstock.store.sql_interface import SqlInterface

        return SqlInterface(self._db, PostgresInterface(self._db))

    def refuse_if_replaced(self) -> None:
        """A server has its database where it says."""

    def quick_check(self) -> None:
        self._db.now()

    def backup(self, target: Path) -> Iterator[float]:
        raise Refused(
            f"{self.name} is a server's database, not a file",
            "back it up with the server's own tools (pg_dump), or copy it into a file",
            code="store_on_server",
            remedy=Remedy("store.copy"),
        )
