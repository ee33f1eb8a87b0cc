"""The SQLite store: all verbs of the seam over one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from penstock.clock import Clock
from penstock.gates.lane import LaneLimits
from penstock.jobs.outcome import Flush, Settlement
from penstock.store.memory import Memory
from penstock.store.sqlite.backup import FileUpkeep
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.sqlite.filesystem import Reserve
from penstock.store.store import Capacity, Kept, Turn
from penstock.store.turn import take_turn
from penstock.store.verbs import Verbs


class SqliteStore(Verbs, FileUpkeep):
    """Penstock in one file."""

    _db: SqliteDatabase
    is_shared = False

    def __init__(self, path: Path, clock: Clock, *, vfs: str | None = None) -> None:
        self._db = SqliteDatabase(path, clock, vfs=vfs)
        self._memory = Memory()
        self._seen_version = self._db.data_version()
        self._reserve = Reserve(path)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def path(self) -> Path:
        return self._db.path

    @property
    def reserve(self) -> Reserve:
        return self._reserve

    def close(self) -> None:
        self._db.close()

    def give_up(self) -> None:
        """Who leaves does not wait for another process that holds the file."""
        self._db.give_up()

    def hurried(self, patience_s: float) -> AbstractContextManager[None]:
        """A file answers, or says that it can't."""
        return nullcontext()

    def reopen(self) -> None:
        """After a disk error: forget what memory holds and read the file again."""
        self._db.reopen()

    def turn(
        self,
        worker: str,
        ends: Sequence[Settlement | Flush],
        capacity: Capacity,
        limits: Mapping[int, LaneLimits],
        kept: Sequence[Kept] = (),
    ) -> Turn:
        """Settle what ended, then claim what may start: one transaction, durable when it returns.

        An end whose attempt no longer owns its job is dropped with all its effects and listed as lost.
        A worker that was buried settles nothing and is given nothing.
        """
        return take_turn(self._db, self._memory, worker, ends, capacity, limits, kept)

    def has_changed(self) -> bool:
        """Whether another connection has committed since this was last asked."""
        version = self._db.data_version()
        changed = version != self._seen_version
        self._seen_version = version
        return changed

    @property
    def listener(self) -> None:
        """A file tells nobody."""
        return None
