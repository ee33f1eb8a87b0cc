"""Upkeep: the small loops beside the work. Each does one batch and leaves the writer to others."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from penstock.clock import Clock
from penstock.engine.leader.sweep import Sweep
from penstock.gates.budget import next_reset
from penstock.settings import Retention
from penstock.settings.budget import Bound
from penstock.store.audit import PRUNE_AFTER_S, SEAL_ROWS
from penstock.store.pages import FIRST, PageKey
from penstock.store.store import Store
from penstock.store.upkeep import Keep

PRUNE_EVERY_S = 60.0
# Budgets begin anew when their time has come, and are looked after so often in between.
RENEW_EVERY_S = 60.0
# How many batches of the journal are sealed at a look: what comes faster is sealed when there is time.
SEALS = 5


class UpkeepChore:
    """Retention, the rest of cancelled runs, new budgets, seals, and the sweep of what nothing refers to."""

    def __init__(
        self,
        store: Store,
        retention: Retention,
        sweep: Sweep,
        clock: Clock,
        bounds: Sequence[Bound] = (),
    ) -> None:
        self._store = store
        self._bounds = bounds
        self._renew_at = 0.0
        self._keep = Keep(
            retention.jobs_s,
            retention.events_s,
            retention.versions_s,
            retention.snapshots_s,
            rejects_s=retention.rejects_s,
            logs_s=retention.logs_s,
            runs_s=retention.runs_s,
            events_overdue_s=PRUNE_AFTER_S,
        )
        self._quarantine_s = retention.quarantine_s
        self._staged_s = retention.staged_s
        self._sweep = sweep
        self._clock = clock
        self._prune_at = 0.0
        self._page: PageKey | None = None

    def do_a_little(self) -> bool:
        """One small batch of whatever is due; True if there is more to do at once."""
        if self._store.runs.sweep_cancelled():
            return True
        now = self._clock.monotonic()
        if now >= self._renew_at:
            if self._store.budgets.renew(self._bounds):
                return True
            self._renew_at = now + self._until_next_reset_s()
        if now >= self._prune_at:
            self._store.quarantine.close_answered()
            if self._store.quarantine.expire(self._quarantine_s):
                return True
            if self._store.replays.drop_old(self._staged_s):
                return True
            if self._store.upkeep.prune(self._keep):
                return True
            if self._forget_pages():
                return True
            self._store.tidy()
            self._prune_at = now + PRUNE_EVERY_S
        if self._store.upkeep.convert_sentences():
            return True
        self._seal()
        self._sweep.look()
        return False

    def _seal(self) -> None:
        for _ in range(SEALS):
            if self._store.audit.seal_if_due() < SEAL_ROWS:
                return

    def _forget_pages(self) -> bool:
        """What is known of pages is kept as long as what was fetched of them; True if there is more."""
        unseen_for_s = self._keep.snapshots_s
        if unseen_for_s is None:
            return False
        self._page = self._store.pages.forget(unseen_for_s, self._page or FIRST)
        return self._page is not None

    def _until_next_reset_s(self) -> float:
        """How long until a budget begins anew; without any there is nothing to come back for."""
        if not self._bounds:
            return inf
        now = self._store.now()
        return min(RENEW_EVERY_S, max(0.0, next_reset(self._bounds, now) - now))
