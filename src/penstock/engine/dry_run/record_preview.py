"""Records as they would be, beside those that are there."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.jobs.effects import Save
from penstock.jobs.record_changes import RecordChange, change_by_save
from penstock.project import Project
from penstock.store.record_rows import Where, combined, where_of

# The data of a record as JSON, and its score.
_Content = tuple[str, float | None]
_encode = msgspec.json.Encoder(order="deterministic").encode


class RecordPreview:
    """What saves would make of records; nothing is written."""

    def __init__(self, project: Project) -> None:
        self._project = project
        # As they are in the store, as they would be, and the difference.
        self._present: dict[Where, _Content | None] = {}
        self._saved: dict[Where, _Content] = {}
        self._changed: dict[Where, RecordChange] = {}

    def changes(self) -> list[RecordChange]:
        """One for each record that was saved, also where that changes nothing."""
        return list(self._changed.values())

    @property
    def count(self) -> int:
        return len(self._saved)

    def saved(self) -> list[dict[str, Any]]:
        """The data of each record as it would be."""
        return [msgspec.json.decode(data) for data, _ in self._saved.values()]

    def contents(self) -> list[tuple[str, str, Any, float | None]]:
        """Collection, key, data and score of each record as it would be."""
        return [
            (*where, msgspec.json.decode(data), score)
            for where, (data, score) in self._saved.items()
        ]

    def save(self, save: Save) -> None:
        """As a turn would: over what is there, and over what was saved before it."""
        where = where_of(save)
        if where not in self._present:
            self._present[where] = self._record(*where)
        now = self._saved.get(where, self._present[where])
        data, score = save.data.decode(), save.score
        if now is not None:
            data, score = combined(save, *now)
        self._saved[where] = (data, score)
        self._changed[where] = change_by_save(where, self._present[where], data, score)

    def _record(self, collection: str, key: str) -> _Content | None:
        versions = self._project.connection.records.versions(collection, key)
        if not versions or versions[-1].is_removed:
            return None
        return _encode(versions[-1].data).decode(), versions[-1].score
