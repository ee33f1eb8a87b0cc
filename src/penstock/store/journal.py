"""The journal's rows: what is stored of an event, and the event as it is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.journal.old_lines import data_of
from penstock.journal.registry import sentence_of, worker_of
from penstock.store.rows import Cursor, EventRow

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class StoredEvent(msgspec.Struct, frozen=True):
    """A row. `detail` is a sentence that an older Penstock wrote; else `data` is a JSON object."""

    id: int
    at: float
    kind: str
    source: str | None
    run_id: int | None
    job_id: int | None
    attempt: int | None
    actor: str
    detail: str
    data: str | None = None
    worker: str | None = None


class Followed(msgspec.Struct):
    """Rows of the journal, and where it ended when they were read."""

    lines: list[StoredEvent]
    end: Cursor


def read_event(row: StoredEvent) -> EventRow:
    """The event with its data and the sentence that is rendered from it."""
    return EventRow(
        row.id,
        row.at,
        row.kind,
        row.source,
        row.run_id,
        row.job_id,
        row.attempt,
        row.actor,
        sentence_of(row.kind, data := _data(row)),
        worker_of(row.kind, row.actor, row.worker),
        data,
    )


def read_events(rows: Iterable[StoredEvent]) -> list[EventRow]:
    return [read_event(row) for row in rows]


def _data(row: StoredEvent) -> dict[str, Any]:
    if row.data is not None:
        return _decode(row.data)
    return data_of(row.kind, row.detail, has_source=row.source is not None)
