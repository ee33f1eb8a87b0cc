"""A SQLite file as one end of a copy. Names of tables and columns are ours, never anybody's input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from penstock.store.copy_progress import Row
from penstock.store.database import storable_text
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.tables import TABLES, Table


class SqliteEnd:
    """Rows are bound and read as they are, not as JSON: a number must arrive to its last bit."""

    def __init__(self, db: SqliteDatabase) -> None:
        self.db = db
        self.name = db.place

    def close(self) -> None:
        self.db.close()

    @property
    def schema(self) -> int:
        return self.db.plan().state.number

    def identity(self) -> str:
        about = self.db.path.stat()
        return f"{about.st_dev}:{about.st_ino}"

    def version(self) -> object:
        return self.db.data_version()

    def reading(self) -> AbstractContextManager[None]:
        return self.db.reading()

    def rows(self, table: Table, after: Sequence[Any]) -> Iterator[Row]:
        names = ", ".join(column.name for column in table.columns)
        key = ", ".join(table.key)
        where = f"WHERE ({key}) > ({', '.join('?' * len(after))})" if after else ""
        text = f"SELECT {names} FROM {table.name} {where} ORDER BY {key}"  # noqa: S608
        for row in self.db.stream(text, after):
            yield _storable(row) if _has_nul(row) else row

    def clear(self) -> None:
        for table in reversed(TABLES):
            self.db.run_sql(f"DELETE FROM {table.name}")  # noqa: S608
        self.db.do("forget_copy")

    def add(self, table: Table, rows: Sequence[Row]) -> None:
        names = ", ".join(column.name for column in table.columns)
        marks = ", ".join("?" * len(table.columns))
        self.db.put(f"INSERT INTO {table.name} ({names}) VALUES ({marks})", rows)  # noqa: S608

    def last_ids(self) -> dict[str, int]:
        return self.db.decoded("last_ids", dict[str, int])

    def raise_ids(self, last_ids: dict[str, int]) -> None:
        """Only where ids are never used twice; elsewhere the next one follows the largest there is."""
        present = self.last_ids()
        for name in ("run", "job", "event"):
            if name not in present:
                self.db.do("add_last_id", table=name)
            self.db.do("raise_last_id", table=name, id=last_ids.get(name, 0))


def _has_nul(row: Row) -> bool:
    return any(type(value) is str and "\x00" in value for value in row)


def _storable(row: Row) -> Row:
    """As the other database would have stored it."""
    return tuple(storable_text(value) if type(value) is str else value for value in row)
