"""Entries of quarantine as spreadsheets read them."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.cli.render.csv_export import cell
from penstock.cli.render.output import Output

if TYPE_CHECKING:
    from penstock.app.views.quarantine import EntryView

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


def write_entries(rows: Iterable[EntryView], out: Output) -> None:
    """As CSV, with nothing in it that a spreadsheet would run."""
    writer = csv.writer(out.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        shape = row.as_json()
        writer.writerow([cell(shape[name], out) for name in COLUMNS])
