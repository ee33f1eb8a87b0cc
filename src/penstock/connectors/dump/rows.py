"""Rows of a part: each with its number and line, as a value with named fields, or with what is wrong."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from penstock.connectors.dump.lines import Lines
from penstock.connectors.dump.parts import Part, Position
from penstock.connectors.dump.records import MOST_COLUMNS, Record, columns_of, records_of
from penstock.connectors.formats.parsed import clean
from penstock.jobs.failures import BadData


class Row(msgspec.Struct, frozen=True):
    """One row. `number` counts from 1 within its table, also those that are broken."""

    number: int
    line: int
    data: Any = None
    problem: str = ""


def rows_of(
    part: Part, at: Position, columns: Sequence[str], has_header: bool
) -> tuple[list[Row], list[str]]:
    """The rows of a part, and the columns of its table, which its first part begins with."""
    records = _numbered(part, at)
    names = list(columns)
    if part.kind == "csv" and at.row == 1 and not names:
        names = _header(records, has_header)
        if not has_header:
            records = _numbered(part, at)
    rows = [_row(number, record, part.kind, names) for number, record in enumerate(records, at.row)]
    rows += [
        Row(at.row + len(rows) + number, line, problem=f"a line of {size:,} bytes")
        for number, (line, size) in enumerate(part.dropped)
    ]
    return rows, names


def _numbered(part: Part, at: Position) -> Iterator[Record]:
    lines = Lines(io.BytesIO(part.body), line=at.line)
    for record in records_of(part.kind, part.delimiter)(lines):
        line = record.line
        for dropped, _ in part.dropped:
            line += dropped <= line
        yield msgspec.structs.replace(record, line=line) if line != record.line else record


def _header(records: Iterator[Record], has_header: bool) -> list[str]:
    first = next(records, None)
    if first is None:
        return []
    if first.problem:
        raise BadData(f"its header can't be read: {first.problem}", cause="no header")
    if len(first.value) > MOST_COLUMNS:
        raise BadData(f"a table of {len(first.value):,} columns; at most {MOST_COLUMNS:,} are read")
    return columns_of(first.value if has_header else [""] * len(first.value))


def _row(number: int, record: Record, kind: str, columns: Sequence[str]) -> Row:
    if record.problem:
        return Row(number, record.line, problem=record.problem)
    if kind != "csv":
        return Row(number, record.line, _cleaned(record.value))
    if len(record.value) != len(columns):
        problem = f"{len(record.value)} cells where the header has {len(columns)}"
        return Row(number, record.line, problem=problem)
    return Row(number, record.line, dict(zip(columns, record.value, strict=True)))


def _cleaned(value: Any) -> Any:
    """Texts that every database takes. JSON writes what they do not take as an escape."""
    if isinstance(value, str):
        return value if value.isascii() and "\0" not in value else clean(value)
    if isinstance(value, dict):
        return {_cleaned(name): _cleaned(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    return value


def require_fields(name: str, rows: Sequence[Row], fields: Sequence[str]) -> None:
    """Refuse a file of which no row has a field: its name is written in another way."""
    found = [row.data for row in rows if not row.problem]
    for field in fields if found else ():
        if not any(field in data for data in found):
            has = ", ".join(list(found[0])[:20])
            raise BadData(
                f"{name} has no column {field}, which is to make the key; it has {has}",
                cause="no key column",
            )


def key_of_row(row: Row, fields: Sequence[str], table: str) -> str:
    """The key of its record: of its fields, or its number; empty if a field has no value."""
    if not fields:
        return f"{table}#{row.number}"
    values = [row.data.get(field) for field in fields]
    if any(value is None or value == "" for value in values):
        return ""
    if len(values) == 1:
        return values[0] if isinstance(values[0], str) else _text(values[0])
    return _text(values)


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
