"""Upkeep: the small loops beside the work. Each does one batch and leaves the writer to others."""

from __future__ import annotations

from penstock.clock import Clock
from penstock.engine.sweep import Sweep
from penstock.settings import Retention
from penstock.store.store import Keep, Store

PRUNE_EVERY_S = 60.0


class Upkeep:
    """Retention, the rest of cancelled runs, and the sweep of what nothing refers to."""

    def __init__(
        self,
        store: Store,
        retention: Retention,
        sweep: Sweep,
        clock: Clock,
    ) -> None:
        self._store = store
        self._keep = Keep(
            retention.jobs_s,
            retention.events_s,
            retention.versions_s,
            retention.snapshots_s,
            rejects_s=retention.rejects_s,
        )
        self._quarantine_s = retention.quarantine_s
        self._sweep = sweep
        self._clock = clock
        self._prune_at = 0.0

    def do_a_little(self) -> bool:
        """One small batch of whatever is due; True if there is more to do at once."""
        if self._store.sweep_cancelled():
            return True
        now = self._clock.monotonic()
        if now >= self._prune_at:
            if self._store.expire_entries(self._quarantine_s):
                return True
            if self._store.prune(self._keep):
                return True
            self._store.tidy()
            self._prune_at = now + PRUNE_EVERY_S
        self._sweep.look()
        return False
