"""Bare apsw: records saved by key, a version each, and nothing around it: the ceiling for saving records."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import msgspec

from bench.records import check, first_load, second_load

CREATE = """
CREATE TABLE record (
  id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, data TEXT NOT NULL, version INTEGER NOT NULL
)
"""
SAVE = """
INSERT INTO record (key, data, version) SELECT value ->> 0, value -> 1, 1 FROM json_each(?) WHERE true
ON CONFLICT (key) DO UPDATE SET data = excluded.data, version = version + 1
WHERE data <> excluded.data
"""


def save(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Load every other record, uncounted, then save all of them, a chunk a durable transaction."""
    db = apsw.Connection(str(folder / "records.db"))
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(CREATE)
    _save(db, first_load(size["records"]), size["chunk"])
    began = time.perf_counter()
    _save(db, second_load(size["records"]), size["chunk"])
    seconds = time.perf_counter() - began
    prices = dict(db.execute("SELECT key, data ->> 'price' FROM record"))
    check(prices, size["records"])
    return {"seconds": seconds, "done": len(prices)}


def _save(db: apsw.Connection, records: Iterator[dict[str, Any]], chunk: int) -> None:
    while batch := [(record["sku"], record) for record in islice(records, chunk)]:
        with db:
            db.execute(SAVE, (msgspec.json.encode(batch).decode(),))
