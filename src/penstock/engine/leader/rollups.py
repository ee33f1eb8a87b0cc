"""Rollups: the journal is summed by hour and day, beside the work, by the host that leads."""

from __future__ import annotations

from penstock.clock import Clock
from penstock.store.rollups import LINES
from penstock.store.store import Store

EVERY_S = 5.0
BACKLOG_EVERY_S = 60.0
PRUNE_EVERY_S = 6 * 3600.0
# What is left when Penstock stops is summed for so long; the rest is left to whoever leads next.
PARTING_S = 2.0


class RollupChore:
    """Sums what was written since the last look, notes backlogs, and drops old hours and days."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._fold_at = self._note_at = self._prune_at = float("-inf")
        self._pruned: int | None = None

    def look(self) -> bool:
        """One small batch of whatever is due; True if there is more to sum at once."""
        now = self._clock.monotonic()
        if now >= self._note_at:
            self._store.rollups.note_backlogs()
            self._note_at = now + BACKLOG_EVERY_S
        if now >= self._prune_at:
            self._prune(now)
        if now < self._fold_at:
            return False
        if self._store.rollups.fold() >= LINES:
            return True
        # What is written meanwhile is summed together: each sum of a source is written once, and an attempt
        # that starts and ends in one batch leaves no row of its own.
        self._fold_at = now + EVERY_S
        return False

    def finish(self) -> None:
        """Sum what is left: somebody may never run more than one short command after the other."""
        until = self._clock.monotonic() + PARTING_S
        while self._store.rollups.fold() and self._clock.monotonic() < until:
            pass
        self._store.rollups.note_backlogs()

    def _prune(self, now: float) -> None:
        self._pruned = self._store.rollups.prune(-1 if self._pruned is None else self._pruned)
        if self._pruned is None:
            self._prune_at = now + PRUNE_EVERY_S
