"""Parts: whole records of a table, few enough for one job; the next part begins where this one ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec

from penstock.connectors.dump.lines import MOST_LINE, Lines
from penstock.connectors.dump.records import records_of

# A larger snapshot makes others wait; and this many rows are one transaction of the store.
MOST_BYTES = 400_000
MOST_ROWS = 2_000


class Position(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a part begins: the table, bytes into it, and the numbers of its first line and row."""

    table: int = 0
    offset: int = 0
    line: int = 1
    row: int = 1


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """Records as they stand in the file, in UTF-8; of files that are no text, as JSON lines."""

    body: bytes
    kind: str
    name: str
    # Records in it, with those that are broken and, at the start of a CSV table, its header.
    records: int = 0
    lines: int = 0
    delimiter: str = ","
    encoding: str = "utf-8"
    # Lines that are too long, by number and length: they are not in the body.
    dropped: list[tuple[int, int]] = []
    next: Position | None = None
    # Of the last one: the file may go on, because its last line or its archive has no end.
    is_open: bool = False
    # What could not be read of the file besides.
    notes: list[str] = []


class FileChanged(Exception):
    """The file is another one than when it was begun."""


class Table(Protocol):
    """One table of a file, read from its start to its end."""

    name: str

    @property
    def offset(self) -> int:
        """Where it stands, by whatever it finds its place again."""
        ...

    def part(self) -> Part | None:
        """The next part; None at the end. Its `next` is not set."""
        ...

    def skip(self, to: Position) -> None:
        """Go to where a part began that another reader has come to."""
        ...


class TextTable:
    """CSV or JSON lines."""

    def __init__(self, name: str, kind: str, lines: Lines, delimiter: str, encoding: str) -> None:
        self.name = name
        self._kind = kind
        self._lines = lines
        self._delimiter = delimiter
        self._encoding = encoding

    @property
    def offset(self) -> int:
        return self._lines.offset

    def part(self) -> Part | None:
        lines = self._lines
        first, body, count = lines.line, bytearray(), 0
        lines.dropped.clear()
        taken = Taken(lines)
        for _ in records_of(self._kind, self._delimiter)(taken):
            body += taken.take()
            count += 1
            if count >= MOST_ROWS or len(body) >= MOST_BYTES:
                break
        else:
            body += taken.take()
        if not body and not lines.dropped:
            return None
        return Part(
            bytes(body),
            self._kind,
            self.name,
            count,
            lines.line - first,
            self._delimiter,
            self._encoding,
            list(lines.dropped),
        )

    def skip(self, to: Position) -> None:
        while self._lines.offset < to.offset and self._lines.next():
            pass
        self._lines.dropped.clear()
        self._lines.line = to.line


class Taken:
    """Lines that remember what was taken of them."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._taken: list[bytes] = []

    @property
    def line(self) -> int:
        return self._lines.line

    def next(self) -> bytes:
        line = self._lines.next()
        if line:
            self._taken.append(line)
        return line

    def put_back(self, lines: list[bytes]) -> None:
        if lines:
            del self._taken[-len(lines) :]
        self._lines.put_back(lines)

    def take(self) -> bytes:
        taken, self._taken = b"".join(self._taken), []
        return taken


class RowsTable:
    """A table that is no text: what it yields becomes JSON lines."""

    def __init__(self, name: str, rows: Iterator[bytes]) -> None:
        self.name = name
        self.offset = 0
        self._rows = rows

    def part(self) -> Part | None:
        return part_of(self.name, self._rows)

    def skip(self, to: Position) -> None:
        for _ in range(to.row - 1):
            if next(self._rows, None) is None:
                return


def part_of(name: str, rows: Iterator[bytes]) -> Part | None:
    """The next rows, each as JSON; those that are too long are left out by their number."""
    body, count = bytearray(), 0
    dropped: list[tuple[int, int]] = []
    for row in rows:
        count += 1
        if len(row) > MOST_LINE:
            dropped.append((count, len(row)))
        else:
            body += row
            body += b"\n"
        if count >= MOST_ROWS or len(body) >= MOST_BYTES:
            break
    if not count:
        return None
    return Part(bytes(body), "jsonl", name, count - len(dropped), count, dropped=dropped)
