"""Records in a text: where each begins and ends, and what it says. One that is broken harms no other."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from penstock.connectors.dump.lines import LineSource
from penstock.connectors.formats.parsed import clean

MARK = "\ufeff"
MOST_COLUMNS = 2_000
# Lines of one record: a quote that nobody closes must not take the rest of the file.
MOST_RECORD_LINES = 1_000
DELIMITERS = ",;\t|"


class Record(msgspec.Struct, frozen=True):
    """A record by the line that it begins at: its cells or its value, or what is wrong with it."""

    line: int
    value: Any = None
    problem: str = ""


Records = Callable[[LineSource], Iterator[Record]]


def csv_records(delimiter: str) -> Records:
    """Records of a CSV text. Lines are taken from the stream no further than to the end of each record."""

    def records(lines: LineSource) -> Iterator[Record]:
        pending: list[bytes] = []

        def texts() -> Iterator[str]:
            while line := lines.next():
                pending.append(line)
                if len(pending) > MOST_RECORD_LINES:
                    raise csv.Error(f"a quoted cell of more than {MOST_RECORD_LINES:,} lines")
                # A character for each byte: where a record ends does not depend on its encoding.
                yield line.decode("latin-1")

        reader = csv.reader(texts(), delimiter=delimiter)
        while True:
            first = lines.line
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                # What the record was to begin with is bad; the lines after it may be records.
                lines.put_back(pending[1:])
                pending.clear()
                reader = csv.reader(texts(), delimiter=delimiter)
                yield Record(first, problem=f"no CSV: {error}")
                continue
            # Lines that were too long came before it, and are left out.
            first = lines.line - len(pending)
            pending.clear()
            if cells:
                yield _decoded(first, cells)

    return records


def _decoded(line: int, cells: list[str]) -> Record:
    try:
        return Record(line, [_text(cell) for cell in cells])
    except UnicodeDecodeError:
        return Record(line, problem="not UTF-8; name the encoding of the file by `encoding`")


def _text(cell: str) -> str:
    return cell if cell.isascii() and "\0" not in cell else clean(cell.encode("latin-1").decode())


def json_records(lines: LineSource) -> Iterator[Record]:
    """A value in each line."""
    while line := lines.next():
        bare = line.strip().removeprefix(MARK.encode())
        if not bare:
            continue
        try:
            value = msgspec.json.decode(bare)
        except (ValueError, RecursionError) as error:
            yield Record(lines.line - 1, problem=f"no JSON: {str(error)[:200]}")
            continue
        if isinstance(value, dict):
            yield Record(lines.line - 1, value)
        else:
            yield Record(lines.line - 1, problem="a JSON value without named fields")


def records_of(kind: str, delimiter: str) -> Records:
    return csv_records(delimiter) if kind == "csv" else json_records


def sniffed_delimiter(start: bytes) -> str:
    """The one that the first line has most of."""
    line = start.partition(b"\n")[0].decode("latin-1")
    return max(DELIMITERS, key=lambda each: (line.count(each), -DELIMITERS.index(each)))


def columns_of(head: list[str]) -> list[str]:
    """A name for each column, none of them twice."""
    found: dict[str, None] = {}
    for number, cell in enumerate(head, 1):
        name = cell.removeprefix(MARK).strip() or f"column {number}"
        while name in found:
            name = f"{name} {number}"
        found[name] = None
    return list(found)
