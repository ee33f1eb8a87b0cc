"""Formats of exports: from the lines of a spool to the file that was asked for."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.app.record_export.columns import Columns
from penstock.csv_cells import guarded
from penstock.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMATS = ("jsonl", "csv", "parquet", "duckdb")
SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".duckdb": "duckdb",
}
# What each needs that a plain install has not.
NEEDS = {"parquet": ("pyarrow",), "duckdb": ("pyarrow", "duckdb")}
EXTRA = "pip install 'penstock[data]'"
Records = Iterable["Mapping[str, Any]"]


def format_of(name: str | None, target: str) -> str:
    """The format that is named, or that the end of the target tells."""
    if name is None:
        found = SUFFIXES.get(Path(target).suffix.lower())
        if found is None:
            raise UsageError(
                "which format?",
                f"one of {', '.join(FORMATS)}, or a file with such an ending",
                code="no_format",
            )
        return found
    if name not in FORMATS:
        raise UsageError(f"there is no format {name!r}", nearest(name, FORMATS), code="no_format")
    return name


def refuse_missing(format_name: str) -> None:
    """Before anything is read: what the format needs must be installed."""
    for module in NEEDS.get(format_name, ()):
        needed(module, f"an export as {format_name}")


def needed(module: str, what: str) -> Any:
    """A library that only this needs, or what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module:
            raise
        hint = EXTRA if module in ("pyarrow", "duckdb") else f"pip install {module}"
        raise UsageError(
            f"{what} needs {module}, which is not installed", hint, code="extra_missing"
        ) from None


def write_csv(records: Records, columns: Columns, path: Path, table: str) -> None:
    """A header, then a line for each record; text that a spreadsheet would run starts with an apostrophe."""
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([guarded(each.name) for each in columns.all])
        for record in records:
            writer.writerow([_csv_cell(each) for each in columns.cells(record)])


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return guarded(value)
    return str(value).lower() if isinstance(value, bool) else value


def write_parquet(records: Records, columns: Columns, path: Path, table: str) -> None:
    from penstock.app.record_export.arrow import batches, schema_of

    parquet = import_module("pyarrow.parquet")
    schema = schema_of(columns)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches(records, columns, schema):
            writer.write_batch(batch)


def write_duckdb(records: Records, columns: Columns, path: Path, table: str) -> None:
    """One table with the name of the collection. Times are in UTC."""
    from penstock.app.record_export.arrow import batches, schema_of

    duckdb, pyarrow = import_module("duckdb"), import_module("pyarrow")
    name = _quoted(table)
    connection = duckdb.connect(str(path))
    try:
        schema = schema_of(columns, zoned=False)
        schema = schema.empty_table().rename_columns(_apart(schema.names)).schema
        connection.from_arrow(schema.empty_table()).create(name)
        for batch in batches(records, columns, schema):
            connection.from_arrow(pyarrow.Table.from_batches([batch])).insert_into(name)
    finally:
        connection.close()


def _apart(names: Sequence[str]) -> list[str]:
    """Names that differ by more than their case, and none of them empty."""
    taken: set[str] = set()
    found = []
    for name in names:
        free = name = name or "_"
        number = 1
        while free.lower() in taken:
            number += 1
            free = f"{name}_{number}"
        taken.add(free.lower())
        found.append(free)
    return found


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


WRITERS: dict[str, Callable[[Records, Columns, Path, str], None]] = {
    "csv": write_csv,
    "parquet": write_parquet,
    "duckdb": write_duckdb,
}
