"""What would become of one record, and of many in numbers: the rows of a difference."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from penstock.jobs.diff import NOTHING, FieldChange, field_changes, shown_path

ChangeKind = Literal["added", "removed", "changed", "same"]
# Why a change is not applied: another run changed the record since it was staged, or what the record is
# made of was fetched later than the page that was replayed.
Obstacle = Literal["", "conflict", "newer"]
# So many different fields are counted one by one; a map with a name for each record has no end of them.
MOST_FIELDS = 200
OTHER_FIELDS = "(other fields)"

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


def change_by_save(
    where: tuple[str, str], before: tuple[str, float | None] | None, data: str, score: float | None
) -> RecordChange:
    """What saving this would do to a record; `before` is its data and score, None if it is not there."""
    old_data, old_score = before or (None, None)
    kind: ChangeKind = "added" if before is None else "changed"
    if before == (data, score):
        kind = "same"
    fields = [] if kind == "same" else changed_fields(old_data, data)
    return RecordChange(*where, kind, "", old_score, score, fields)


def changed_fields(before: str | None, after: str | None) -> list[FieldChange]:
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
