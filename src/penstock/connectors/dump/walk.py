"""The walk through a file: table by table, part by part, from any part on.

Text that is neither packed nor in another encoding is gone into by its offset. Everything else has to be read
from its start; so what is open stays open in this process for the part that comes next, and only after a
restart or on another worker it is read again up to there.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from penstock.connectors.dump.archives import Member, tar_members, zip_members
from penstock.connectors.dump.lines import Lines
from penstock.connectors.dump.markup import xml_rows
from penstock.connectors.dump.parquet import parquet_rows
from penstock.connectors.dump.parts import Part, Position, RowsTable, Table, TextTable
from penstock.connectors.dump.records import sniffed_delimiter
from penstock.connectors.dump.streams import (
    BLOCK,
    Bounded,
    Told,
    as_utf8,
    bare_name,
    compression_of,
    is_utf8,
    open_stream,
    unpacked,
)
from penstock.connectors.files.globs import Globs
from penstock.jobs.failures import BadData

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".tar": "tar",
    ".tgz": "tar",
    ".zip": "zip",
    ".xml": "xml",
    ".parquet": "parquet",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
}
TEXTS = ("csv", "jsonl")
MOST_OPEN = 4
_MARK = b"\xef\xbb\xbf"
_SNIFFED = 65_536


class Reading(msgspec.Struct, frozen=True):
    """How a file is to be read. What is empty is found out."""

    format: str = ""
    delimiter: str = ""
    encoding: str = ""
    members: tuple[str, ...] = ()
    has_header: bool = True
    element: str = ""
    max_bytes: int = 100_000_000_000


def format_of(name: str) -> str:
    """The format of a file by its name; empty if it is none that is read."""
    bare = bare_name(name).lower()
    return next((kind for end, kind in FORMATS.items() if bare.endswith(end)), "")


class Dialect(msgspec.Struct, frozen=True):
    """What was found out about the table at the start of it."""

    delimiter: str = ","
    encoding: str = "utf-8"


class Walk:
    """A file that is open at one of its parts."""

    def __init__(
        self, file: Path, name: str, reading: Reading, at: Position, dialect: Dialect
    ) -> None:
        self._notes: list[str] = []
        self._reading = reading
        self._dialect = dialect
        self._is_sought = False
        # Whether nothing but its last bytes tell that the file is whole, and whether they do not.
        self._is_bare = False
        self._is_open = False
        self._tables = self._opened(file, name, at)
        # Where the part begins that is handed out next, and that part.
        self.at = at
        self._table: Table | None = None
        self._ahead = self._read(lambda: self._first(at))

    def _first(self, at: Position) -> Part | None:
        for _ in range(at.table + 1):
            self._table = next(self._tables, None)
        if self._table is not None and not self._is_sought:
            self._table.skip(at)
        return self._next()

    def _read(self, read: Callable[[], Part | None]) -> Part | None:
        """What it reads; if that fails, nothing stays open."""
        try:
            return read()
        except BaseException:
            self.close()
            raise

    def part(self) -> Part:
        """The next part. `next` says where the one after it begins, if there is one."""
        part, self._ahead = self._ahead, None
        if part is None:
            return Part(b"", "jsonl", "", notes=self._notes)
        self.at = self._after(part)
        self._ahead = self._read(self._next)
        notes, self._notes = self._notes, []
        following = None if self._ahead is None else self.at
        is_open = following is None and self._ends_open(part)
        return msgspec.structs.replace(part, next=following, notes=notes, is_open=is_open)

    def _ends_open(self, last: Part) -> bool:
        return self._is_open or (self._is_bare and not last.body.endswith((b"\n", b"\r")))

    def _after(self, part: Part) -> Position:
        header = int(part.kind == "csv" and self.at.row == 1 and self._reading.has_header)
        return Position(
            self.at.table,
            self._table.offset if self._table is not None else 0,
            self.at.line + part.lines,
            self.at.row + max(0, part.records - header) + len(part.dropped),
        )

    def _next(self) -> Part | None:
        while self._table is not None:
            part = self._table.part()
            if part is not None:
                return part
            self._table = next(self._tables, None)
            self.at = Position(self.at.table + 1)
        return None

    def close(self) -> None:
        close = getattr(self._tables, "close", None)
        if close is not None:
            close()

    def _opened(self, file: Path, name: str, at: Position) -> Iterator[Table]:
        kind = self._reading.format or format_of(name)
        compression = compression_of(name) or ("gz" if name.lower().endswith(".tgz") else "")
        if kind in ("zip", "tar"):
            yield from self._archive(file, name, kind, compression)
        elif kind in TEXTS:
            self._is_bare = not compression
            with open_stream(file, compression, self._reading.max_bytes) as stream:
                is_plain = not compression and is_utf8(self._dialect.encoding)
                self._is_sought = is_plain and at.offset > 0
                if self._is_sought:
                    stream.seek(at.offset)
                yield self._text(name, kind, stream, at if self._is_sought else Position())
        elif kind == "xml":
            with open_stream(file, compression, self._reading.max_bytes) as stream:
                yield RowsTable(name, xml_rows(stream, self._reading.element))
        elif kind == "parquet":
            self._is_sought = at.row > 1
            yield RowsTable(name, parquet_rows(file, at.row - 1))
        elif kind == "sqlite":
            yield from self._database(file, name)
        else:
            raise BadData(
                f"{name} has no format that is known: name it by `format`", cause="no format"
            )

    def _text(self, name: str, kind: str, stream: io.BufferedReader, at: Position) -> TextTable:
        delimiter, encoding, offset = self._dialect.delimiter, self._dialect.encoding, at.offset
        if not self._is_sought:
            stream, encoding = as_utf8(stream, self._reading.encoding)
            start = stream.peek(_SNIFFED)[:_SNIFFED]
            if start.startswith(_MARK):
                offset = len(stream.read(len(_MARK)))
            is_tabbed = bare_name(name).lower().endswith(".tsv")
            found = "\t" if is_tabbed else sniffed_delimiter(start)
            delimiter = self._reading.delimiter or found
        return TextTable(name, kind, Lines(stream, offset, at.line), delimiter, encoding)

    def _database(self, file: Path, name: str) -> Iterator[Table]:
        from penstock.connectors.dump.database import DatabaseTable, table_names

        wanted = Globs(self._reading.members)
        for table in table_names(file):
            if not wanted or wanted.decide(table, False):
                yield DatabaseTable(file, name, table)

    def _archive(self, file: Path, name: str, kind: str, compression: str) -> Iterator[Table]:
        wanted = Globs(self._reading.members)

        def on_open_end() -> None:
            # What is packed as a whole says itself where it ends.
            self._is_open = not compression

        most = self._reading.max_bytes
        for member, packed, stream in _members(file, kind, compression, most, on_open_end):
            if wanted and not wanted.decide(member, False):
                continue
            inner = format_of(member)
            if inner not in (*TEXTS, "xml"):
                self._notes.append(f"{name}/{member[:200]} left out: no table that is read")
                continue
            whole: Told = stream if kind == "tar" else _Known(packed)
            opened = unpacked(stream, compression_of(member))
            bounded: Any = Bounded(opened, whole, most)
            plain = io.BufferedReader(bounded, BLOCK)
            table = f"{name}/{member}"
            if inner == "xml":
                yield RowsTable(table, xml_rows(plain, self._reading.element))
            else:
                yield self._text(table, inner, plain, Position())


class _Known:
    """The packed size of a member of a zip file, of which no position can be asked."""

    def __init__(self, size: int) -> None:
        self._size = max(size, 1)

    def tell(self) -> int:
        return self._size


def _members(
    file: Path, kind: str, compression: str, most: int, on_open_end: Callable[[], None]
) -> Iterator[Member]:
    if kind == "zip":
        yield from zip_members(file)
        return
    with open_stream(file, compression, most) as stream:
        yield from tar_members(stream, on_open_end)


class OpenWalks:
    """The walks that stand where a next part may begin."""

    def __init__(self) -> None:
        self._walks: dict[tuple[str, str, Position], Walk] = {}
        self._lock = Lock()

    def take(self, file: Path, stamp: str, at: Position) -> Walk | None:
        """The one that stands there, if there is one."""
        with self._lock:
            return self._walks.pop((str(file), stamp, at), None)

    def give(self, file: Path, stamp: str, walk: Walk) -> None:
        """Leave it open for whoever reads on from there."""
        with self._lock:
            self._walks[str(file), stamp, walk.at] = walk
            old = [self._walks.pop(key) for key in list(self._walks)[:-MOST_OPEN]]
        for each in old:
            each.close()
