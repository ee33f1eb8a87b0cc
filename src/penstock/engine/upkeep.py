"""Upkeep: the small loops beside the work. Each does one batch and leaves the writer to others."""

from __future__ import annotations

from collections.abc import Callable

from penstock.clock import Clock
from penstock.engine.sweep import Sweep
from penstock.settings import Retention
from penstock.store.store import Keep, Store

PRUNE_EVERY_S = 60.0


class Upkeep:
    """Retention, the sweep of cancelled runs, and burying workers whose lease ran out."""

    def __init__(
        self,
        store: Store,
        retention: Retention,
        sweep: Sweep,
        clock: Clock,
    ) -> None:
        self._store = store
        self._keep = Keep(
            retention.jobs_s, retention.events_s, retention.versions_s, retention.snapshots_s
        )
        self._sweep = sweep
        self._clock = clock
        self._prune_at = 0.0

    def bury_expired(self, tell: Callable[[str], None], is_alive: Callable[[str], bool]) -> None:
        """Give the jobs of workers that stopped beating back to their lanes.

        A lease that ran out because the clock was set forward, or because the machine slept, is no
        death: who is seen alive is renewed.
        """
        for worker in self._store.expired_workers():
            if is_alive(worker):
                self._store.beat(worker)
                continue
            jobs = self._store.bury(worker, "its lease ran out")
            tell(f"worker {worker} stopped beating: {len(jobs)} jobs run again")

    def do_a_little(self) -> bool:
        """One small batch of whatever is due; True if there is more to do at once."""
        if self._store.sweep_cancelled():
            return True
        now = self._clock.monotonic()
        if now >= self._prune_at:
            if self._store.prune(self._keep):
                return True
            self._store.tidy()
            self._prune_at = now + PRUNE_EVERY_S
        self._sweep.look()
        return False
