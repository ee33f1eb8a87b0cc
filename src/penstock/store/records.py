"""Records: unique by (collection, key), with every earlier version kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from penstock.jobs.outcome import Save
from penstock.store.database import Database, Overtaken, bounded_text, to_json
from penstock.store.ledger import Ledger

# What fits into one entry of an index, on every database.
NAME_BYTES = 240
KEY_BYTES = 2000

_encode = msgspec.json.Encoder(order="deterministic").encode


class _Present(msgspec.Struct):
    """A record as this transaction has it so far; `id` is None until it is inserted."""

    id: int | None
    version: int
    data: str
    score: float | None
    is_new: bool = False
    is_changed: bool = False
    source_id: int = 0
    run_id: int = 0
    snapshot_id: int | None = None


def save_records(db: Database, ledger: Ledger, saves: Sequence[tuple[int, int, Save]]) -> None:
    """Save in order; equal content is counted as unchanged and writes nothing.

    Several saves of one key in one transaction leave one version: what was never committed is no version.
    """
    while True:
        present = _present(db, saves)
        verdicts = [
            (run_id, _apply(present, source_id, run_id, save)) for source_id, run_id, save in saves
        ]
        with suppress(Overtaken), db.nested():
            _write(db, ledger, present)
            break
    for run_id, verdict in verdicts:
        ledger.count(run_id, verdict, 1)


def _present(
    db: Database, saves: Sequence[tuple[int, int, Save]]
) -> dict[tuple[str, str], _Present]:
    keys = {_where(save): None for _, _, save in saves}
    found = db.json("present", keys=to_json(list(keys)))
    return {
        (collection, key): _Present(record_id, version, data, score)
        for collection, key, record_id, version, data, score in found
    }


def _where(save: Save) -> tuple[str, str]:
    return bounded_text(save.collection, NAME_BYTES), bounded_text(save.key, KEY_BYTES)


def _apply(
    present: dict[tuple[str, str], _Present], source_id: int, run_id: int, save: Save
) -> str:
    where = _where(save)
    old = present.get(where)
    data = save.data.decode()
    if old is None:
        present[where] = _Present(
            None, 1, data, save.score, True, True, source_id, run_id, save.snapshot
        )
        return "inserted"
    if save.merge == "keep":
        return "unchanged"
    if save.merge == "merge":
        data = _merged(old.data, data)
    score = old.score if save.merge == "merge" and save.score is None else save.score
    if data == old.data and score == old.score:
        return "unchanged"
    old.data, old.score, old.is_changed = data, score, True
    old.source_id, old.run_id, old.snapshot_id = source_id, run_id, save.snapshot
    return "updated"


def _merged(old: str, new: str) -> str:
    """The new fields over the old ones; anything that is not an object is replaced."""
    before: Any = msgspec.json.decode(old)
    after: Any = msgspec.json.decode(new)
    if not isinstance(before, dict) or not isinstance(after, dict):
        return new
    return _encode({**before, **after}).decode()


def _write(db: Database, ledger: Ledger, present: dict[tuple[str, str], _Present]) -> None:
    changed = {where: record for where, record in present.items() if record.is_changed}
    if not changed:
        return
    run_ids = sorted({record.run_id for record in changed.values()})
    versions = db.json("pipeline_versions", ids=to_json(run_ids))
    inserts, updates = [], []
    added: dict[str, int] = defaultdict(int)
    for (collection, key), r in changed.items():
        tail = (r.data, r.score, r.source_id, r.run_id, r.snapshot_id, versions[str(r.run_id)])
        if r.is_new:
            inserts.append((collection, key, *tail))
            added[collection] += 1
        else:
            updates.append((r.id, r.version + 1, *tail))
    if inserts:
        if db.do("insert_records", now=ledger.now, inserts=to_json(inserts)) != len(inserts):
            raise Overtaken
        db.do("count_collections", deltas=to_json(sorted(added.items())))
    if updates:
        db.do("keep_versions", now=ledger.now, ids=to_json([row[0] for row in updates]))
        db.do("update_records", now=ledger.now, updates=to_json(updates))
