"""Entries of quarantine as programs and spreadsheets read them."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.cli.csv_export import cell
from penstock.cli.output import Output
from penstock.cli.wording import iso
from penstock.store.entries import EntryRow

COLUMNS = (
    *(
        "job",
        "run",
        "source",
        "stage",
        "unit",
        "key",
        "kind",
        "cause",
        "error",
        "traceback",
        "item",
    ),
    *("snapshot", "url", "attempt", "tries", "deaths", "quarantines", "since", "first_at"),
    *("last_at", "escalated_at", "closed_at", "closed_why", "closed_by_job", "notes"),
)
# What a list leaves out: one of these can be longer than all the rest.
LONG = ("traceback", "item")


def entry_shape(row: EntryRow, is_short: bool = False) -> dict[str, Any]:
    """An entry by the names that every command has for its parts; times in UTC, the item as it is."""
    shape = {
        "job": row.id,
        "run": row.run_id,
        **{name: getattr(row, name) for name in ("source", "stage", "unit", "key", "kind")},
        **{name: getattr(row, name) for name in ("cause", "error", "traceback")},
        "item": _item(row),
        "snapshot": row.snapshot.id if row.snapshot else None,
        "url": row.snapshot.url if row.snapshot else None,
        **{name: getattr(row, name) for name in ("attempt", "tries", "deaths", "quarantines")},
        "since": iso(row.since),
        "first_at": iso(row.first_at),
        "last_at": iso(row.last_at),
        "escalated_at": iso(row.escalated_at),
        "closed_at": iso(row.closed_at),
        "closed_why": row.closed_why,
        "closed_by_job": row.closed_by_job_id,
        "notes": [{"at": iso(n.at), "actor": n.actor, "text": n.text} for n in row.notes],
    }
    return {name: value for name, value in shape.items() if not (is_short and name in LONG)}


def write_entries(rows: Iterable[EntryRow], out: Output) -> None:
    """As CSV, with nothing in it that a spreadsheet would run."""
    writer = csv.writer(out.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        shape = entry_shape(row)
        writer.writerow([cell(shape[name], out) for name in COLUMNS])


def _item(row: EntryRow) -> Any:
    """The item itself; as text where it is not JSON."""
    if row.item is None:
        return None
    try:
        return msgspec.json.decode(row.item)
    except msgspec.DecodeError:
        return row.item
