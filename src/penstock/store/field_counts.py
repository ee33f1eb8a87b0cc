"""Fields of what runs saved: counted as it is saved, and compared when the run ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from penstock.jobs.effects.fields import parts_of
from penstock.jobs.run import RunState
from penstock.jobs.run_policy import policy_of
from penstock.journal.source_events import SchemaDrifted
from penstock.schemas.drift import Fields, drift_of
from penstock.store.database import Database, to_json
from penstock.store.health import RunEnd
from penstock.store.ledger import Ledger


def count_fields(db: Database, found: Mapping[tuple[int, int], Counter[str]]) -> None:
    """Add what attempts have counted, by run and source."""
    rows = [
        (*about, *parts_of(key), number)
        for about, counts in sorted(found.items())
        for key, number in sorted(counts.items())
    ]
    if rows:
        db.do("add_run_fields", fields=to_json(rows))


def note_drift(db: Database, ledger: Ledger, ends: Sequence[RunEnd]) -> None:
    """Write an event for each collection whose fields differ from those of the source's run before."""
    for end in ends:
        is_telling = end.state in (RunState.COMPLETED, RunState.PARTIAL)
        if not is_telling or not policy_of(end.kind, end.options).verifies_schemas:
            continue
        now = _fields(db, end.source_id, end.run_id)
        if not now:
            continue
        last = db.value("last_fielded_run", source_id=end.source_id, run_id=end.run_id)
        before = {} if last is None else _fields(db, end.source_id, last)
        for collection, fields in sorted(now.items()):
            changes = drift_of(before.get(collection, {}), fields)
            if changes:
                event = SchemaDrifted(collection, tuple(changes), last)
                ledger.journal(event, end.source_id, end.run_id, actor="penstock")
                data = to_json({"collection": collection, "run": end.run_id, "changes": changes})
                signal = (event.kind, data, end.source_id, end.run_id)
                db.do("add_signals", now=ledger.now, signals=to_json([signal]))
        db.do("drop_run_fields", source_id=end.source_id, run_id=end.run_id)


def _fields(db: Database, source_id: int, run_id: int) -> dict[str, Fields]:
    found: dict[str, dict[str, dict[str, int]]] = {}
    for collection, field, kind, records in db.json(
        "run_fields", source_id=source_id, run_id=run_id
    ):
        found.setdefault(collection, {}).setdefault(field, {})[kind] = records
    return dict(found)
