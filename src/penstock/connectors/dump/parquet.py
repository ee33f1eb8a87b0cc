"""Rows of a Parquet file, by pyarrow: batch by batch, without whole row groups in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from penstock.connectors.dump.parts import MOST_ROWS
from penstock.jobs.failures import BadData, Permanent

BUFFER = 1_048_576
MOST_FOOTER = 16_000_000


def parquet_rows(file: Path, skipped: int) -> Iterator[bytes]:
    """The rows after the first so many, as JSON."""
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError:
        raise Permanent(
            "reading Parquet needs pyarrow: pip install 'penstock[data]', then retry",
            cause="pyarrow is not installed",
        ) from None
    _check_footer(file)
    try:
        with parquet.ParquetFile(
            file,
            buffer_size=BUFFER,
            pre_buffer=False,
            thrift_string_size_limit=MOST_FOOTER,
            thrift_container_size_limit=1_000_000,
        ) as opened:
            yield from _rows(opened, skipped)
    except (ArrowException, OSError, ValueError, TypeError) as error:
        raise BadData(
            f"no Parquet that can be read: {str(error)[:200]}", cause="no parquet"
        ) from None


def _rows(opened: object, skipped: int) -> Iterator[bytes]:
    """Row groups that lie before are not even read."""
    file: Any = opened
    groups: list[int] = []
    for group in range(file.metadata.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        if not groups and skipped >= size:
            skipped -= size
        else:
            groups.append(group)
    for batch in file.iter_batches(batch_size=MOST_ROWS // 2, row_groups=groups):
        for row in batch.slice(min(skipped, batch.num_rows)).to_pylist():
            yield msgspec.json.encode(row, enc_hook=str)
        skipped -= min(skipped, batch.num_rows)


def _check_footer(file: Path) -> None:
    """What is read before anything is known about it: its length stands at the end of the file."""
    with file.open("rb") as opened:
        size = opened.seek(0, 2)
        opened.seek(max(0, size - 8))
        tail = opened.read(8)
    if len(tail) < 8 or tail[4:] != b"PAR1":
        raise BadData("no Parquet: its end is missing", cause="no parquet")
    if int.from_bytes(tail[:4], "little") > min(MOST_FOOTER, size):
        raise BadData(
            f"Parquet with more than {MOST_FOOTER:,} bytes of metadata", cause="no parquet"
        )
