"""Rows of somebody's SQLite file, read only.

The one place outside the store that speaks SQL: to another database than Penstock's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import msgspec

from penstock.connectors.dump.lines import MOST_LINE
from penstock.connectors.dump.parts import MOST_ROWS, Part, Position, part_of
from penstock.jobs.failures import BadData, Transient

MOST_TABLES = 10_000
# Steps of SQLite's machine for one row: a view or expression of a stranger must not run for ever.
MOST_STEPS = 50_000_000


def table_names(file: Path) -> list[str]:
    """Its tables, by name; views and SQLite's own ones are left out."""
    with _Opened(file) as found:
        rows = found.rows(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' "
            "AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name LIMIT ?",
            (MOST_TABLES,),
        )
        return [str(name) for (name,) in rows]


class DatabaseTable:
    """A table, opened for each part alone: nobody who writes to the file has to wait for us meanwhile."""

    def __init__(self, file: Path, prefix: str, table: str) -> None:
        self.name = f"{prefix}/{table}"
        self._file = file
        self._quoted = '"' + table.replace('"', '""') + '"'
        # The rowid of the row that was read last, and how many were.
        self.offset = 0
        self._count = 0

    def skip(self, to: Position) -> None:
        self.offset, self._count = to.offset, to.row - 1

    def part(self) -> Part | None:
        with _Opened(self._file) as opened:
            rows = self._by_rowid(opened) or self._by_number(opened)
            return part_of(self.name, (msgspec.json.encode(row) for row in self._taken(rows)))

    def _taken(self, rows: Iterator[tuple[int, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
        for rowid, row in rows:
            self.offset, self._count = rowid, self._count + 1
            yield row

    def _by_rowid(self, opened: _Opened) -> Iterator[tuple[int, dict[str, Any]]] | None:
        """None if the table has no rowid, or a column that is called so."""
        columns = [str(row[1]) for row in opened.rows(f"PRAGMA table_info({self._quoted})")]
        if {"rowid", "oid", "_rowid_"} & {name.lower() for name in columns}:
            return None
        after = "WHERE rowid > ?" if self._count else ""
        query = f"SELECT rowid, * FROM {self._quoted} {after} ORDER BY rowid LIMIT {MOST_ROWS}"  # noqa: S608
        try:
            found = opened.rows(query, (self.offset,) if self._count else ())
        except _NoRowid:
            return None
        return ((row[0], dict(zip(columns, row[1:], strict=False))) for row in found)

    def _by_number(self, opened: _Opened) -> Iterator[tuple[int, dict[str, Any]]]:
        columns = [str(row[1]) for row in opened.rows(f"PRAGMA table_info({self._quoted})")]
        query = f"SELECT * FROM {self._quoted} LIMIT {MOST_ROWS} OFFSET ?"  # noqa: S608
        found = opened.rows(query, (self._count,))
        return ((self.offset + 1, dict(zip(columns, row, strict=False))) for row in found)


class _NoRowid(Exception):
    """The table has none."""


class _Opened:
    """A connection that can only read, believes nothing that the file declares, and ends in one line."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.steps = 0

    def __enter__(self) -> _Opened:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        try:
            self.connection = apsw.Connection(f"file:{quote(str(self._file))}?mode=ro", flags)
            self.connection.limit(apsw.SQLITE_LIMIT_LENGTH, MOST_LINE)
            self.connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
            self.connection.set_progress_handler(self._progress, 100_000)
            self.connection.execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")
        except apsw.Error as error:
            raise _refusal(error) from None
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close(True)

    def _progress(self) -> bool:
        self.steps += 100_000
        return self.steps > MOST_STEPS

    def rows(self, query: str, about: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows as they are asked for; the first one is looked for at once."""
        try:
            cursor = self.connection.execute(query, about)
        except apsw.SQLError as error:
            if "no such column: rowid" in str(error):
                raise _NoRowid from None
            raise _refusal(error) from None
        except apsw.Error as error:
            raise _refusal(error) from None
        return self._guarded(cursor)

    def _guarded(self, cursor: apsw.Cursor) -> Iterator[tuple[Any, ...]]:
        while True:
            self.steps = 0
            try:
                row = next(cursor, None)
            except apsw.Error as error:
                raise _refusal(error) from None
            if row is None:
                return
            yield row


def _refusal(error: apsw.Error) -> Exception:
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return Transient("somebody writes to the SQLite file", cause="database is busy")
    return BadData(f"no SQLite file that can be read: {str(error)[:200]}", cause="no sqlite")
