"""Records: unique by (collection, key), with every earlier version kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from penstock.jobs.effects import Save
from penstock.journal.run_events import RecordOverwritten
from penstock.store.database import Database, Overtaken, bounded_text, to_json
from penstock.store.ledger import Ledger

# What fits into one entry of an index, on every database.
NAME_BYTES = 240
KEY_BYTES = 2000

_encode = msgspec.json.Encoder(order="deterministic").encode


class Present(msgspec.Struct):
    """A record as this transaction has it so far; `id` is None until it is inserted.

    `adds` is what it changes its collection's number of records by. A version that has no
    `pipeline_version` of its own has that of its run.
    """

    id: int | None
    version: int
    data: str
    score: float | None
    is_removed: bool = False
    is_changed: bool = False
    adds: int = 0
    source_id: int = 0
    run_id: int = 0
    snapshot_id: int | None = None
    pipeline_version: str | None = None


Where = tuple[str, str]
# How many records of a collection a run has replaced that another source had written: (source, run,
# collection, other source).
Overwritten = Counter[tuple[int, int, str, int]]


def save_records(db: Database, ledger: Ledger, saves: Sequence[tuple[int, int, Save]]) -> list[str]:
    """Save in order; equal content is counted as unchanged and writes nothing. Answers what each did.

    Several saves of one key in one transaction leave one version: what was never committed is no version.
    """
    placed = [(where_of(save), source_id, run_id, save) for source_id, run_id, save in saves]
    while True:
        present = read_present(db, {each[0]: None for each in placed})
        overwritten: Overwritten = Counter()
        verdicts = [_apply(present, overwritten, *each) for each in placed]
        with suppress(Overtaken), db.nested():
            write_records(db, ledger, present)
            break
    if overwritten:
        _tell_overwritten(db, ledger, overwritten)
    counts = Counter((each[1], verdict) for each, verdict in zip(saves, verdicts, strict=True))
    for (run_id, verdict), count in counts.items():
        ledger.count(run_id, verdict, count)
    return verdicts


def read_present(db: Database, keys: Iterable[Where]) -> dict[Where, Present]:
    """These records as they are, locked where others may write; those that are not there are missing."""
    found = db.json("present", keys=to_json(list(keys)))
    return {
        (collection, key): Present(
            record_id, version, data, score, bool(is_removed), source_id=source_id
        )
        for collection, key, record_id, version, data, score, is_removed, source_id in found
    }


def where_of(save: Save) -> Where:
    """The collection and key that a save is stored under."""
    return place_of(save.collection, save.key)


def place_of(collection: str, key: str) -> Where:
    return bounded_text(collection, NAME_BYTES), bounded_text(key, KEY_BYTES)


def _tell_overwritten(db: Database, ledger: Ledger, overwritten: Overwritten) -> None:
    """Records that another source had written last: two sources that replace each other's are a mistake."""
    names = {source_id: key for key, source_id in db.json("source_ids").items()}
    for (source_id, run_id, collection, other), count in sorted(overwritten.items()):
        whose = names.get(other, f"source {other}")
        event = RecordOverwritten(count, collection, whose)
        ledger.journal(event, source_id, run_id, actor="penstock")


def _apply(
    present: dict[Where, Present],
    overwritten: Overwritten,
    where: Where,
    source_id: int,
    run_id: int,
    save: Save,
) -> str:
    old = present.get(where)
    data, score = save.data.decode(), save.score
    if old is None:
        old = present[where] = Present(None, 0, data, score)
        verdict = "inserted"
    elif old.is_removed:
        verdict = "inserted"  # what was taken away comes back as if it were new
    elif save.merge == "keep":
        return "unchanged"
    else:
        data, score = combined(save, old.data, old.score)
        if data == old.data and score == old.score:
            return "unchanged"
        verdict = "updated"
        if save.merge == "replace" and old.source_id != source_id:
            overwritten[source_id, run_id, where[0], old.source_id] += 1
    old.data, old.score, old.is_removed, old.is_changed = data, score, False, True
    old.source_id, old.run_id, old.snapshot_id = source_id, run_id, save.snapshot
    old.pipeline_version = save.version or None
    old.adds += verdict == "inserted"
    return verdict


def combined(save: Save, data: str, score: float | None) -> tuple[str, float | None]:
    """What a record with this data and score becomes by being saved again."""
    if save.merge == "keep":
        return data, score
    if save.merge == "replace":
        return save.data.decode(), save.score
    return _merged(data, save.data.decode()), score if save.score is None else save.score


def _merged(old: str, new: str) -> str:
    """The new fields over the old ones; anything that is not an object is replaced."""
    before: Any = msgspec.json.decode(old)
    after: Any = msgspec.json.decode(new)
    if not isinstance(before, dict) or not isinstance(after, dict):
        return new
    return _encode({**before, **after}).decode()


def write_records(db: Database, ledger: Ledger, present: dict[Where, Present]) -> None:
    """Write what is changed as a new version of each; what was before becomes an earlier one.

    Raises Overtaken where somebody else has inserted a record meanwhile.
    """
    changed = {where: record for where, record in present.items() if record.is_changed}
    if not changed:
        return
    run_ids = sorted({record.run_id for record in changed.values()})
    versions = db.json("pipeline_versions", ids=to_json(run_ids))
    inserts, updates = [], []
    added: dict[str, int] = defaultdict(int)
    for (collection, key), r in changed.items():
        pipeline_version = r.pipeline_version or versions[str(r.run_id)]
        tail = (r.data, r.score, r.source_id, r.run_id, r.snapshot_id, pipeline_version)
        added[collection] += r.adds
        if r.id is None:
            inserts.append((collection, key, *tail))
        else:
            updates.append((r.id, r.version + 1, *tail, r.is_removed))
    if inserts and db.do("insert_records", now=ledger.now, inserts=to_json(inserts)) != len(
        inserts
    ):
        raise Overtaken
    if updates:
        db.do("keep_versions", now=ledger.now, ids=to_json([row[0] for row in updates]))
        db.do("update_records", now=ledger.now, updates=to_json(updates))
    if deltas := sorted((name, number) for name, number in added.items() if number):
        db.do("count_collections", deltas=to_json(deltas))
