"""What the alert rules are shown of a project, from maintained counters: nothing here scans a journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.store.database import to_json
from penstock.store.noun import Noun

WHOLE = 1 << 24
MOST_ID = (1 << 63) - 1


class WatchedSource(msgspec.Struct, frozen=True, array_like=True):
    """A source as it is now: how many of its jobs wait, and when its last good run ended."""

    id: int
    key: str
    is_paused: bool
    waiting: int
    good_at: float | None


class WatchedRun(msgspec.Struct, frozen=True, array_like=True):
    """A full or incremental run that has ended, with its counters."""

    id: int
    started_at: float
    finished_at: float
    state: str
    pipeline_version: str
    ended: int
    failed: int
    inserted: int
    updated: int
    unchanged: int
    rejected: int
    duplicates: int


class Undelivered(msgspec.Struct, frozen=True, array_like=True):
    """What a hook, or a route by `alert:NAME`, has not accepted since it last accepted something.

    `given_up` are the times of what is not sent any more, `failing_since` is that of the first that failed.
    """

    hook: str
    given_up: list[float]
    failing_since: float | None
    failed: int
    error: str


class AlertFacts(Noun):
    """The facts of now, each with one query for all sources, and the runs of one source."""

    def sources(self) -> list[WatchedSource]:
        return self._db.decoded("watched_sources", list[WatchedSource])

    def ended_since(self, since: float) -> set[int]:
        """The sources of which a run has ended since then."""
        return set(self._db.json("sources_with_ends", since=since))

    def runs(
        self,
        source_id: int,
        since: float,
        limit: int,
        *,
        before_id: int = MOST_ID,
        share: int = WHOLE,
    ) -> list[WatchedRun]:
        """The newest ended runs of a source that were added after then, oldest first; or a sample of them."""
        about: dict[str, Any] = {"source_id": source_id, "since": since, "limit": limit}
        about |= {"before_id": before_id, "share": share}
        return self._db.decoded("watched_runs", list[WatchedRun], **about)[::-1]

    def undelivered(self, since: float) -> list[Undelivered]:
        """Hooks and routes with deliveries that fail, or that were given up since then."""
        return self._db.decoded("undelivered_by_hook", list[Undelivered], since=since)

    def missed_in_a_row(self, places: Sequence[tuple[int, str]]) -> dict[tuple[int, str], int]:
        """How many of the last starts of these schedules were missed, one after the other."""
        rows = self._db.json("missed_in_a_row", places=to_json(sorted(places))) if places else []
        return {(source_id, name): missed for source_id, name, missed in rows}
