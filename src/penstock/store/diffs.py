"""The difference that a replay would make, record by record and field by field, before it is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import msgspec

from penstock.jobs.diff import NOTHING, FieldChange, field_changes, shown_path
from penstock.store.replays import BEGINNING, ChangeKind, Obstacle, Rejects, StagedChange
from penstock.store.rows import RunRow
from penstock.store.store import Store
from penstock.store.undoing import UndoChange

PAGE = 1000
# So many different fields are counted one by one; a map with a name for each record has no end of them.
MOST_FIELDS = 200
OTHER_FIELDS = "(other fields)"
# What is lost is looked at first.
GRAVEST = ("removed", "changed", "added")

_decode = msgspec.json.decode


class RecordChange(msgspec.Struct, frozen=True):
    """What would become of one record. `obstacle` says why it is left alone unless it is forced."""

    collection: str
    key: str
    kind: ChangeKind
    obstacle: Obstacle = ""
    score_before: float | None = None
    score_after: float | None = None
    fields: list[FieldChange] = []

    @property
    def score_shift(self) -> float:
        if self.kind != "changed" or self.score_before is None or self.score_after is None:
            return 0.0
        return self.score_after - self.score_before


class Totals(msgspec.Struct):
    """A difference in numbers. What is left alone is counted apart, and nowhere else."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    same: int = 0
    conflicts: int = 0
    newer: int = 0
    scores_up: int = 0
    scores_down: int = 0
    score_shift: float = 0.0
    fields: dict[str, int] = {}
    # Of an undo: records whose version before the run is no longer kept.
    lost: int = 0

    @property
    def mean_shift(self) -> float:
        """By how much the scores that move do so, on the average."""
        moved = self.scores_up + self.scores_down
        return self.score_shift / moved if moved else 0.0

    @property
    def differences(self) -> int:
        return self.added + self.removed + self.changed

    def count(self, change: RecordChange) -> None:
        if change.obstacle:
            self.conflicts += change.obstacle == "conflict"
            self.newer += change.obstacle == "newer"
            return
        self.added += change.kind == "added"
        self.removed += change.kind == "removed"
        self.same += change.kind == "same"
        if change.kind == "changed":
            self._count_changed(change)

    def _count_changed(self, change: RecordChange) -> None:
        self.changed += 1
        shift = change.score_shift
        self.scores_up += shift > 0
        self.scores_down += shift < 0
        self.score_shift += shift
        for name in {_field_of(field) for field in change.fields}:
            if name not in self.fields and len(self.fields) >= MOST_FIELDS:
                name = OTHER_FIELDS
            self.fields[name] = self.fields.get(name, 0) + 1

    @property
    def common_fields(self) -> list[tuple[str, int]]:
        """The fields that change in the most records first."""
        return sorted(self.fields.items(), key=lambda field: (-field[1], field[0]))


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
        before = store.runs_since(run.source_id, run.options.since_at)
    now = store.reject_shift([run.id], before, run.id, limit)
    return now, store.reject_shift(before, [run.id], run.id, limit)


def record_changes(store: Store, run_id: int, totals: Totals) -> Iterator[RecordChange]:
    """Every difference in the order of collections and keys, a page of them in memory at a time."""
    totals.same += store.staged_same(run_id)
    after = BEGINNING
    while page := store.staged_changes(run_id, after, PAGE):
        for staged in page:
            change = _change(staged)
            totals.count(change)
            if change.kind != "same":
                yield change
        after = page[-1].where


def undo_changes(store: Store, run_id: int, totals: Totals) -> Iterator[RecordChange]:
    """The same for what undoing a run would change."""
    after_id = 0
    while page := store.undo_changes(run_id, after_id):
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
        [] if kind == "same" else _fields(before, after),
    )


def change_by_save(
    where: tuple[str, str], before: tuple[str, float | None] | None, data: str, score: float | None
) -> RecordChange:
    """What saving this would do to a record; `before` is its data and score, None if it is not there."""
    old_data, old_score = before or (None, None)
    kind: ChangeKind = "added" if before is None else "changed"
    if before == (data, score):
        kind = "same"
    fields = [] if kind == "same" else _fields(old_data, data)
    return RecordChange(*where, kind, "", old_score, score, fields)


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
        _fields(before, after),
    )


def _fields(before: str | None, after: str | None) -> list[FieldChange]:
    """Field by field; of a record that is not there on one side, each of its fields is what differs."""
    if before is not None and after is not None:
        return field_changes(_decode(before), _decode(after))
    value: Any = _decode(before or after or "null")
    fields = value.items() if isinstance(value, dict) else [(None, value)]
    return [
        FieldChange(
            () if name is None else (name,),
            NOTHING if before is None else each,
            NOTHING if after is None else each,
        )
        for name, each in fields
    ]


def _field_of(change: FieldChange) -> str:
    """The field without the places in lists: `images[].url` is one field, however many images there are."""
    names = tuple(part for part in change.path if isinstance(part, str))
    return shown_path(names)
