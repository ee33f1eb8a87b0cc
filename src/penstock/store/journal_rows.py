"""The journal's rows: what is stored of an event, and the event as it is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from penstock.journal.condition import Condition
from penstock.journal.registry import current_kind, sentence_of, worker_of
from penstock.store.database import Database, to_json
from penstock.store.history import Marks
from penstock.store.rows import Cursor, EventRow
from penstock.store.schema import JOURNAL_HAS_DATA

# For how long an older version may write beside a newer one before its sentences are left as they are.
BESIDE_S = 3600.0
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
    origin: str | None = None


class Followed(msgspec.Struct):
    """Rows of the journal, and where it ended when they were read."""

    lines: list[StoredEvent]
    end: Cursor


class FollowedKinds(msgspec.Struct):
    """The kinds of some rows, and where the journal ended when they were read."""

    kinds: list[str]
    end: Cursor


def read_event(row: StoredEvent) -> EventRow:
    """The event under the name that its kind has today, with its data and the sentence of it."""
    kind = current_kind(row.kind)
    return EventRow(
        row.id,
        row.at,
        kind,
        row.source,
        row.run_id,
        row.job_id,
        row.attempt,
        row.actor,
        sentence_of(kind, data := _data(row)),
        worker_of(kind, row.actor, row.worker),
        data,
        row.origin,
    )


def read_events(rows: Iterable[StoredEvent]) -> list[EventRow]:
    return [read_event(row) for row in rows]


class _Piece(msgspec.Struct):
    """Some lines of the journal, and those of them that are sentences: id, kind, sentence, has a source."""

    last_id: int | None
    last_at: float | None
    count: int
    lines: list[tuple[int, str, str, bool | int]]


def convert_sentences(db: Database, marks: Marks, limit: int) -> int:
    """Turn what older versions wrote as sentences into data, one piece at a time; 0 when all is done.

    Only what is older than the data: what an older version writes beside a newer one later on stays, and is
    read all the same. Losing the mark costs one walk along these lines.
    """
    if marks.converted is None:
        return 0
    from penstock.journal.old_lines import data_of

    piece = db.decoded("old_sentences", _Piece, after_id=marks.converted, limit=limit)
    converted = [
        (line_id, kind, to_json(data_of(kind, sentence, has_source=bool(has_source))))
        for line_id, kind, sentence, has_source in piece.lines
    ]
    if converted:
        with db.writing():
            db.do("convert_sentences", converted=to_json(converted))
    since = float(db.value("journal_data_since", number=JOURNAL_HAS_DATA) or 0.0)
    is_last = piece.count < limit or (piece.last_at or 0.0) > since + BESIDE_S
    marks.converted = None if is_last else piece.last_id
    return piece.count


def conditions(where: Sequence[Condition]) -> str | None:
    """What of these conditions the database can look at; `matching` has the last word."""
    rows = [
        ("data" if each.path else each.field, _json_path(each.path), each.value, each.path)
        for each in where
    ]
    return to_json(rows) if rows else None


def _json_path(path: Sequence[str]) -> str:
    return "".join(["$", *(f'."{name}"' for name in path)])


def matching(events: Sequence[EventRow], where: Sequence[Condition]) -> list[EventRow]:
    return [event for event in events if all(each.holds(event) for each in where)]


def _data(row: StoredEvent) -> dict[str, Any]:
    if row.data is not None:
        return _decode(row.data)
    # Only a line that is older than the data of the journal needs the old sentences.
    from penstock.journal.old_lines import data_of

    return data_of(row.kind, row.detail, has_source=row.source is not None)
