"""Tables and values: CSV, JSON, and JSON line by line."""

from __future__ import annotations

import csv
import io
from typing import Any

import msgspec

from penstock.connectors.formats.parsed import MOST_DATA_BYTES, MOST_ROWS, Parsed, clean
from penstock.http.charset import decoded
from penstock.jobs.failures import BadData

DELIMITERS = ",;\t|"
MOST_COLUMNS = 2_000
_encode = msgspec.json.Encoder().encode


def read_csv(body: bytes, name: str, url: str, content_type: str) -> Parsed:
    text = clean(decoded(body, content_type))
    delimiter = "\t" if name.lower().endswith(".tsv") else _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    columns = _columns(next(reader, []))
    rows: list[Any] = []
    count = size = 0
    for row in reader:
        if not row:
            continue
        count += 1
        size += sum(map(len, row))
        if len(rows) < MOST_ROWS and size <= MOST_DATA_BYTES:
            rows.append(dict(zip(columns, [*row, *[""] * len(columns)], strict=False)))
    meta: dict[str, Any] = {"columns": columns, "rows": count}
    if len(rows) < count:
        meta["cut"] = True
    return Parsed(kind="csv", title=name, meta=meta, data=rows)


def _delimiter(text: str) -> str:
    """The one that the first line has most of."""
    line = text[:65_536].partition("\n")[0]
    return max(DELIMITERS, key=lambda each: (line.count(each), -DELIMITERS.index(each)))


def _columns(head: list[str]) -> list[str]:
    """A name for each column, none of them twice."""
    if len(head) > MOST_COLUMNS:
        raise BadData(f"a table of {len(head):,} columns; at most {MOST_COLUMNS:,} are read")
    found: dict[str, None] = {}
    for number, cell in enumerate(head, 1):
        name = cell.strip() or f"column {number}"
        while name in found:
            name = f"{name} {number}"
        found[name] = None
    return list(found)


def read_json(body: bytes, name: str, url: str, content_type: str) -> Parsed:
    value = msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf"))
    title = ""
    if isinstance(value, dict):
        title = next(
            (str(value[key]) for key in ("title", "name") if isinstance(value.get(key), str)), ""
        )
    data, meta = _kept(value, len(body))
    return Parsed(kind="json", title=title or name, meta=meta, data=data)


def _kept(value: Any, size: int) -> tuple[Any, dict[str, Any]]:
    """The value, if a record can hold it; of a long list its beginning."""
    if isinstance(value, list):
        rows = [] if size > MOST_DATA_BYTES else value[:MOST_ROWS]
        for row in value if size > MOST_DATA_BYTES else ():
            if len(rows) >= MOST_ROWS or len(_encode(rows)) > MOST_DATA_BYTES // 2:
                break
            rows.append(row)
        meta: dict[str, Any] = {"rows": len(value)}
        return rows, {**meta, "cut": True} if len(rows) < len(value) else meta
    return (value, {}) if size <= MOST_DATA_BYTES else (None, {"cut": True})


def read_jsonl(body: bytes, name: str, url: str, content_type: str) -> Parsed:
    rows: list[Any] = []
    count = size = 0
    for number, line in enumerate(io.BytesIO(body.removeprefix(b"\xef\xbb\xbf")), 1):
        if not line.strip():
            continue
        count += 1
        size += len(line)
        if len(rows) >= MOST_ROWS or size > MOST_DATA_BYTES:
            continue
        try:
            rows.append(msgspec.json.decode(line))
        except (ValueError, RecursionError) as error:
            raise BadData(f"line {number} is not JSON: {error}", cause="no jsonl") from None
    meta: dict[str, Any] = {"rows": count}
    return Parsed(
        kind="jsonl",
        title=name,
        meta={**meta, "cut": True} if len(rows) < count else meta,
        data=rows,
    )
