"""Parquet, by pyarrow: its columns and first rows."""

from __future__ import annotations

import io
from typing import Any

import msgspec

from penstock.connectors.formats.parsed import MOST_ROWS, Parsed


def read_parquet(body: bytes, name: str, url: str, content_type: str) -> Parsed:
    from pyarrow import parquet

    file = parquet.ParquetFile(io.BytesIO(body))
    rows: list[Any] = []
    for batch in file.iter_batches(batch_size=MOST_ROWS):
        rows = msgspec.to_builtins(batch.to_pylist(), enc_hook=str)
        break
    columns = {field.name: str(field.type) for field in file.schema_arrow}
    meta: dict[str, Any] = {"columns": columns, "rows": file.metadata.num_rows}
    is_cut = len(rows) < file.metadata.num_rows
    return Parsed(
        kind="parquet", title=name, meta={**meta, "cut": True} if is_cut else meta, data=rows
    )
