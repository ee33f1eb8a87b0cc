"""Staging: what a replay saves is put beside the records, until a person commits or drops it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from penstock.jobs.effects import Save
from penstock.store.database import Database, Overtaken, to_json
from penstock.store.ledger import Ledger
from penstock.store.record_rows import combined, where_of

_Key = tuple[int, str, str]
_Value = tuple[str, float | None]


class _Staged(msgspec.Struct):
    """What one replay would make of one record; `value` is None where the record is as it was."""

    record: _Value | None
    record_version: int
    value: _Value | None = None
    merge: str = ""
    source_id: int = 0
    snapshot: int | None = None
    base_version: int = 0
    is_known: bool = False

    @property
    def present(self) -> _Value | None:
        """What the record would be by now."""
        return self.value or self.record


def stage_records(db: Database, ledger: Ledger, saves: Sequence[tuple[int, int, Save]]) -> None:
    """Stage in order, as `save_records` saves; nothing happens to the records themselves."""
    while True:
        staged = _staged(db, saves)
        verdicts = [
            (run_id, _apply(staged[_key(run_id, save)], source_id, save))
            for source_id, run_id, save in saves
        ]
        with suppress(Overtaken), db.nested():
            _write(db, ledger, staged)
            break
    for run_id, verdict in verdicts:
        ledger.count(run_id, verdict, 1)


def _key(run_id: int, save: Save) -> _Key:
    return run_id, *where_of(save)


def _staged(db: Database, saves: Sequence[tuple[int, int, Save]]) -> dict[_Key, _Staged]:
    keys = {_key(run_id, save): None for _, run_id, save in saves}
    found: dict[_Key, _Staged] = {}
    for row in db.json("staged_present", keys=to_json(list(keys))):
        run_id, collection, key, merge, data, score, snapshot, base = row[:8]
        version, record_data, record_score, is_removed = row[8:]
        has_record = version is not None and not is_removed
        staged = _Staged((record_data, record_score) if has_record else None, version or 0)
        staged.base_version = staged.record_version
        staged.is_known = merge is not None
        if merge is not None and merge != "remove":
            staged.merge, staged.snapshot = merge, snapshot
            if data is not None:
                staged.value, staged.base_version = (data, score), base
        found[run_id, collection, key] = staged
    return found


def _apply(staged: _Staged, source_id: int, save: Save) -> str:
    before = staged.present
    after = _after(staged, save)
    is_same_as_record = staged.record == after and staged.base_version == staged.record_version
    staged.value = None if is_same_as_record else after
    staged.merge, staged.source_id = save.merge, source_id
    staged.snapshot = _later(staged.snapshot, save.snapshot)
    if before is None:
        return "inserted"
    return "unchanged" if before == after else "updated"


def _after(staged: _Staged, save: Save) -> _Value:
    """What the record becomes. Pages are replayed in any order: where two make one record, the page
    that was fetched later has the last word, as it had."""
    present = staged.present
    if present is None:
        return save.data.decode(), save.score
    is_older = (
        staged.merge != ""
        and staged.snapshot is not None
        and save.snapshot is not None
        and save.snapshot < staged.snapshot
    )
    if not is_older:
        return combined(save, *present)
    if save.merge != "merge":
        return present
    again = msgspec.structs.replace(save, data=present[0].encode(), score=present[1])
    return combined(again, save.data.decode(), save.score)


def _later(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _write(db: Database, ledger: Ledger, staged: dict[_Key, _Staged]) -> None:
    new: list[tuple[object, ...]] = []
    again: list[tuple[object, ...]] = []
    for key, s in staged.items():
        data, score = s.value or (None, None)
        row = (*key, data, score, s.merge, s.source_id, s.snapshot, s.base_version)
        (again if s.is_known else new).append(row)
    if new and db.do("stage_new", now=ledger.now, rows=to_json(new)) != len(new):
        raise Overtaken
    if again:
        db.do("stage_again", now=ledger.now, rows=to_json(again))
