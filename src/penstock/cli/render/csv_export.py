"""Records as CSV: a column for each field, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock import csv_cells
from penstock.cli.render.output import Output
from penstock.cli.render.wording import harmless_lines

ABOUT = ("key", "score", "source", "run", "version", "updated_at")
# Where data is not a mapping, or a field of it is called like one of the record's own.
DATA = "data"


def write_csv(records: Callable[[], Iterable[Mapping[str, Any]]], out: Output) -> None:
    """Write all records, read twice: once for the columns they have, once for what is in them.

    A field that first appears between the two reads has no column; a note says so.
    """
    fields = columns(records())
    writer = csv.writer(out.stdout, lineterminator="\n")
    writer.writerow([guarded(out.masked(name)) for name in (*ABOUT, *fields)])
    late: set[str] = set()
    for record in records():
        cells = {**{name: record[name] for name in ABOUT}, **flat(record[DATA])}
        late |= cells.keys() - fields.keys() - set(ABOUT)
        writer.writerow([cell(cells.get(name), out) for name in (*ABOUT, *fields)])
    if late:
        out.note(f"appeared while this was written, not included: {', '.join(sorted(late))}")


def columns(records: Iterable[Mapping[str, Any]]) -> dict[str, None]:
    """The fields of all data, in the order in which they first occur."""
    found: dict[str, None] = {}
    for record in records:
        found |= dict.fromkeys(flat(record[DATA]))
    return found


def flat(data: Any) -> dict[str, Any]:
    """The top-level fields of a record's data, none of them under a name of the record's own."""
    if not isinstance(data, dict):
        return {DATA: data}
    return {f"{DATA}.{name}" if name in ABOUT else name: value for name, value in data.items()}


def cell(value: Any, out: Output) -> str:
    """Text as it is, numbers as numbers, everything else as JSON; secrets masked."""
    if value is None:
        return ""
    if isinstance(value, str):
        return guarded(out.masked(value))
    shown = out.as_json(value)
    return guarded(shown) if isinstance(value, (dict, list)) else shown


def guarded(text: str) -> str:
    """Text that a spreadsheet takes for text, whatever it begins with and wherever it is cut into cells."""
    return harmless_lines(csv_cells.guarded(text))
