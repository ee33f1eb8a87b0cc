"""The difference that a replay would make, record by record and field by field, before it is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

import msgspec

from penstock.jobs.record_changes import ChangeKind, RecordChange, Totals, changed_fields
from penstock.store.replays import BEGINNING, Rejects, StagedChange
from penstock.store.rows import RunRow
from penstock.store.store import Store
from penstock.store.undos import UndoChange

PAGE = 1000
# What is lost is looked at first.
GRAVEST = ("removed", "changed", "added")


class Diff(msgspec.Struct):
    """What a replay would change: in numbers, the first records of it, and what it rejects."""

    run: RunRow
    totals: Totals
    first: list[RecordChange]
    rejected_now: Rejects
    rejected_before: Rejects


def read_diff(store: Store, run: RunRow, limit: int) -> Diff:
    """All of a replay's difference is walked through; `limit` records of it are kept, the gravest first."""
    totals = Totals()
    first = gravest(record_changes(store, run.id, totals), limit)
    return Diff(run, totals, first, *rejected(store, run))


def gravest(changes: Iterable[RecordChange], limit: int) -> list[RecordChange]:
    """So many of them: what is removed, then what is changed, then what is added. All are walked through."""
    found: dict[str, list[RecordChange]] = {kind: [] for kind in GRAVEST}
    for change in changes:
        kept = found.setdefault(change.kind, [])
        if len(kept) < limit:
            kept.append(change)
    return list(islice(chain.from_iterable(found.values()), limit))


def rejected(store: Store, run: RunRow, limit: int = 20) -> tuple[Rejects, Rejects]:
    """What the replay rejects and the replayed runs did not, and the other way round."""
    before = [run.of_run_id] if run.of_run_id is not None else []
    if run.options.since_at is not None:
        before = store.runs.since(run.source_id, run.options.since_at)
    now = store.replays.reject_shift([run.id], before, run.id, limit)
    return now, store.replays.reject_shift(before, [run.id], run.id, limit)


def record_changes(store: Store, run_id: int, totals: Totals) -> Iterator[RecordChange]:
    """Every difference in the order of collections and keys, a page of them in memory at a time."""
    totals.same += store.replays.staged_same(run_id)
    after = BEGINNING
    while page := store.replays.staged_changes(run_id, after, PAGE):
        for staged in page:
            change = _change(staged)
            totals.count(change)
            if change.kind != "same":
                yield change
        after = page[-1].where


def undo_changes(store: Store, run_id: int, totals: Totals) -> Iterator[RecordChange]:
    """The same for what undoing a run would change."""
    after_id = 0
    while page := store.undos.changes(run_id, after_id):
        for found in page:
            if found.kind == "lost":
                totals.lost += 1
                continue
            change = _undo_change(found)
            totals.count(change)
            yield change
        after_id = page[-1].id


def _change(staged: StagedChange) -> RecordChange:
    kind = staged.kind
    before = None if kind == "added" else staged.old_data
    after = None if kind == "removed" else staged.data
    return RecordChange(
        staged.collection,
        staged.key,
        kind,
        "" if kind == "same" else staged.obstacle,
        None if kind == "added" else staged.old_score,
        None if kind == "removed" else staged.score,
        [] if kind == "same" else changed_fields(before, after),
    )


def _undo_change(found: UndoChange) -> RecordChange:
    kind: ChangeKind = "changed"
    if found.kind in ("added", "removed"):
        kind = found.kind
    before = None if kind == "added" else found.data
    after = None if kind == "removed" else found.old_data
    return RecordChange(
        found.collection,
        found.key,
        kind,
        "",
        None if kind == "added" else found.score,
        None if kind == "removed" else found.old_score,
        changed_fields(before, after),
    )
