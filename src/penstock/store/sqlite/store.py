"""The SQLite store: all verbs of the seam over one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.clock import Clock
from penstock.gates.lanes import LaneLimits, Sharing
from penstock.jobs.outcome import Flush, Settlement
from penstock.store.sqlite.database import Database
from penstock.store.sqlite.filesystem import Reserve
from penstock.store.sqlite.reading import Reading
from penstock.store.sqlite.runs import Runs
from penstock.store.sqlite.turn import take_turn
from penstock.store.sqlite.upkeep import Upkeep
from penstock.store.sqlite.workers import Workers
from penstock.store.store import Capacity, Kept, Turn


class SqliteStore(Runs, Workers, Reading, Upkeep):
    """Penstock in one file."""

    def __init__(
        self, path: Path, clock: Clock, *, vfs: str | None = None, must_exist: bool = False
    ) -> None:
        self._clock = clock
        self._db = Database(path, vfs=vfs, is_readonly=must_exist)
        self._sharing = Sharing()
        self._seen_version = self._db.data_version()
        self._reserve = Reserve(path)

    @property
    def path(self) -> Path:
        return self._db.path

    @property
    def reserve(self) -> Reserve:
        return self._reserve

    def close(self) -> None:
        self._db.close()

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
        now = self._clock.now()
        with self._db.writing():
            return take_turn(self._db, self._sharing, now, worker, ends, capacity, limits, kept)

    def has_changed(self) -> bool:
        """Whether another connection has committed since this was last asked."""
        version = self._db.data_version()
        changed = version != self._seen_version
        self._seen_version = version
        return changed
