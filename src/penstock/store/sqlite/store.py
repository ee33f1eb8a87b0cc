"""The SQLite store: one file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from penstock.clock import Clock
from penstock.errors import Remedy, StoreCorrupt
from penstock.store.sqlite.backup import backup
from penstock.store.sqlite.database import SqliteDatabase, translated
from penstock.store.sqlite.filesystem import Reserve
from penstock.store.store import Store

if TYPE_CHECKING:
    from penstock.store.sql_interface import SqlInterface


class SqliteStore(Store):
    """Penstock in one file."""

    _db: SqliteDatabase
    is_shared = False

    def __init__(self, path: Path, clock: Clock, *, vfs: str | None = None) -> None:
        super().__init__(SqliteDatabase(path, clock, vfs=vfs), Reserve(path))
        self._seen_version = self._db.data_version()

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def path(self) -> Path:
        return self._db.path

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

    def tidy(self) -> None:
        """Give the space of the write-ahead log back; does nothing while a reader is in the way."""
        with translated(self._db.path):
            self._db.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def sql_interface(self) -> SqlInterface:
        from penstock.store.sql_interface import SqlInterface
        from penstock.store.sqlite.sql_interface import SqliteInterface

        return SqlInterface(self._db, SqliteInterface(self._db))

    def refuse_if_replaced(self) -> None:
        self._db.refuse_if_replaced()

    def quick_check(self) -> None:
        """Refuse to work on a damaged file."""
        found = [row[0] for row in self._db.run_sql("PRAGMA quick_check(5)")]
        if found != ["ok"]:
            raise StoreCorrupt(
                f"{self._db.path} is damaged: {found[0]}",
                "stop Penstock, keep the file, and restore a backup",
                remedy=Remedy("store.restore"),
            )

    def backup(self, target: Path) -> Iterator[float]:
        return backup(self._db, target)
