"""Records as Arrow: for Parquet, DuckDB, pandas and polars."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from importlib import import_module
from typing import Any

from penstock.app.record_export.columns import Columns

BATCH = 10_000


def schema_of(columns: Columns, *, zoned: bool = True) -> Any:
    """The Arrow schema. A column of JSON is text, and says so in its metadata."""
    pa = import_module("pyarrow")
    types = {
        "boolean": pa.bool_(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "string": pa.string(),
        "json": pa.string(),
        "time": pa.timestamp("us", tz="UTC" if zoned else None),
    }
    return pa.schema(
        [
            pa.field(
                each.name,
                types[each.kind],
                metadata={"json": "true"} if each.kind == "json" else None,
            )
            for each in columns.all
        ]
    )


def batches(records: Iterable[Mapping[str, Any]], columns: Columns, schema: Any) -> Iterator[Any]:
    """The records as record batches of this schema; a million need no more memory than a batch."""
    pa = import_module("pyarrow")
    times = [at for at, each in enumerate(columns.all) if each.kind == "time"]
    left = iter(records)
    while some := list(itertools.islice(left, BATCH)):
        rows = [columns.cells(record) for record in some]
        for row in rows:
            for at in times:
                row[at] = datetime.fromisoformat(row[at]) if row[at] else None
        arrays = [
            pa.array(values, type=field.type)
            for values, field in zip(zip(*rows, strict=True), schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
