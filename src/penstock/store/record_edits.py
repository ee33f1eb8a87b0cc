"""Edits of records by hand: a new version of the record, and a line in the journal.

Every version belongs to a run. Those that people write belong to one run of the source, which has no jobs and
has ended; undoing it brings back what the records were before all edits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.errors import Refused, UsageError
from penstock.jobs.run import Plan, PlannedStage, RunKind, RunOptions, RunState
from penstock.journal.run_events import RecordEdited
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.record_rows import Present, Where, read_present, write_records

KEY = "edits"
STAGE = "(edits)"
VERSION = "edited by hand"

_encode = msgspec.json.Encoder(order="deterministic").encode


class RecordEdits(Noun):
    """The verbs that change records without a pipeline."""

    def edit(
        self,
        collection: str,
        key: str,
        fields: Mapping[str, Any],
        actor: str,
        reason: str,
        *,
        if_version: int | None = None,
    ) -> int:
        """Set these fields of a record; answers with its version, which is new unless nothing differs.

        With `if_version` it is refused if the record has another version by now.
        """
        where: Where = (collection, key)
        with self._db.writing() as now:
            record = read_present(self._db, [where]).get(where)
            if record is None or record.is_removed or record.id is None:
                raise UsageError(f"there is no {collection} record {key!r:.100}", code="no_record")
            if if_version not in (None, record.version):
                raise Refused(f"this {collection} record has changed", code="record_changed")
            before = _object(record, collection)
            changed = {name for name, value in fields.items() if before.get(name) != value}
            if not changed:
                return record.version
            record.data, record.is_changed = _encode({**before, **fields}).decode(), True
            record.run_id = run_of_edits(self._db, record.source_id, actor, now)
            record.pipeline_version = VERSION
            ledger = Ledger(self._db, now)
            write_records(self._db, ledger, {where: record})
            version = record.version + 1
            event = RecordEdited(record.id, collection, version, tuple(sorted(changed)), reason)
            ledger.journal(event, record.source_id, record.run_id, actor=actor)
            ledger.write()
            return version


def run_of_edits(db: Database, source_id: int, actor: str, now: float) -> int:
    """The run of a source that what people write belongs to."""
    known = db.value("known_run", source_id=source_id, key=KEY)
    return int(known) if known is not None else _add_run(db, source_id, actor, now)


def _add_run(db: Database, source_id: int, actor: str, now: float) -> int:
    plan = Plan((PlannedStage(STAGE, "run"),))
    run_id: int | None = db.value(
        "add_run",
        source_id=source_id,
        kind=RunKind.REPLAY,
        state=RunState.QUEUED,
        options=to_json(RunOptions()),
        of_run_id=None,
        key=KEY,
        plan=to_json(plan),
        pipeline_version=VERSION,
        actor=actor,
        reason=VERSION,
        for_drains=False,
        now=now,
    )
    if run_id is None:  # another was faster by a moment, and has committed by now
        return int(db.value("known_run", source_id=source_id, key=KEY))
    db.do("add_stages", run_id=run_id, stages=to_json(plan.stages))
    about = {"id": run_id, "state": RunState.COMPLETED, "end_reason": VERSION, "now": now}
    db.do("end_run_if_active", **about)
    return run_id


def _object(record: Present, collection: str) -> dict[str, Any]:
    found = msgspec.json.decode(record.data)
    if not isinstance(found, dict):
        raise Refused(f"this {collection} record is no object: it has no fields to set")
    return found
