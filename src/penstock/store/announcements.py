"""Announcing: the moments that steps have announced, around which a source is looked at more often."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.store.database import Database, to_json
from penstock.store.noun import Noun

# What is announced of a source beyond this is not kept; the soonest come first.
MOST = 1000
# Longer ago than any window reaches.
OVER_S = 86_400.0


class Announcement(msgspec.Struct, frozen=True, array_like=True):
    source_id: int
    at: float


class Sooner(msgspec.Struct, frozen=True, array_like=True):
    """A schedule that is due earlier than it was taken to be."""

    source_id: int
    name: str
    version: int
    due_at: float


class Announcements(Noun):
    """The verbs of announcements."""

    def of(self, source_id: int) -> list[float]:
        """The moments that are announced of a source, the oldest first; some may be over for a day."""
        return announced_of(self._db, source_id)

    def open(self, limit: int = 500) -> list[Announcement]:
        """Those that nobody who leads has heard of yet."""
        return [Announcement(*row) for row in self._db.rows("open_announcements", limit=limit)]

    def bring_forward(self, heard: Sequence[Announcement], sooner: Sequence[Sooner]) -> int:
        """Close these, and have those schedules due earlier; answers how many are.

        One that is due as early by now, or has another definition, is left alone: nothing is ever due
        later for it, and nothing that is due is forgotten.
        """
        with self._db.writing():
            moved = self._db.do("bring_forward_if_later", schedules=to_json(sorted_(sooner)))
            self._db.do("close_announcements", announced=to_json(sorted_(heard)))
            return moved


def sorted_(rows: Sequence[Announcement] | Sequence[Sooner]) -> list[tuple[object, ...]]:
    """In the order in which everybody takes their locks."""
    return sorted(msgspec.structs.astuple(each) for each in rows)


def announced_of(db: Database, source_id: int) -> list[float]:
    return [float(row[0]) for row in db.rows("announcements", source_id=source_id)]


def note_announced(db: Database, now: float, announced: Sequence[tuple[int, float, int]]) -> None:
    """Remember (source, moment, run), each moment once."""
    first: dict[tuple[int, float], int] = {}
    for source_id, at, run_id in announced:
        if at > now - OVER_S:
            first.setdefault((source_id, at), run_id)
    if first:
        rows = [(*where, run_id) for where, run_id in sorted(first.items())]
        db.do("add_announcements", announced=to_json(rows), most=MOST)
