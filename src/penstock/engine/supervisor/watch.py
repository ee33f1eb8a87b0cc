"""The watch over everybody's workers: those whose lease ran out are buried, and their jobs run again.

A lease that ran out is no proof of death. After an outage of the database everybody's has, and after its
clock was set forward too; the living must have the time to renew theirs. So an expiry is believed only by
who has been in touch with the store, without a gap, for a whole lease: in that time the living have beaten.
"""

from __future__ import annotations

from collections.abc import Collection

from penstock.clock import Clock
from penstock.engine.supervisor.looks import PATIENCE_S
from penstock.errors import StoreError
from penstock.store.store import Store
from penstock.store.workers import LEASE_S

# Between two looks that follow each other without a gap no more than this passes, by either clock.
LONGEST_GAP_S = 5.0


class Contact:
    """Since when a process has been in touch with its store without a gap."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._heard_at = 0.0
        self._told = 0.0

    def heard(self, monotonic: float, store_now: float) -> None:
        """The store has answered, and this is its time."""
        gap_s = max(monotonic - self._heard_at, store_now - self._told)
        if self._since is None or gap_s > LONGEST_GAP_S:
            self._since = monotonic
        self._heard_at, self._told = monotonic, store_now

    def lost(self) -> None:
        self._since = None

    @property
    def is_there(self) -> bool:
        """Whether the store answered when it was last asked."""
        return self._since is not None

    def is_steady(self, monotonic: float) -> bool:
        """Whether nothing of the last lease was missed."""
        return self._since is not None and monotonic - self._since >= LEASE_S


class Watch:
    """Looks for dead workers, on behalf of all hosts. Every supervisor keeps one."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.contact = Contact()

    def look(self, alive: Collection[str], ours: Collection[str] = ()) -> list[tuple[str, int]]:
        """Bury who has stopped beating; answers with each and how many jobs it left.

        `alive` are workers that the caller sees living: theirs are renewed, whatever the clocks say.
        `ours` it has started itself, and learns of their ends in a better way.
        """
        try:
            with self._store.hurried(PATIENCE_S):
                expired = self._store.workers.expired()
                self.contact.heard(self._clock.monotonic(), self._store.now())
        except StoreError:
            self.contact.lost()
            raise
        buried = []
        for worker in expired:
            if worker in alive:
                self._store.workers.beat(worker)
            elif worker not in ours and self.contact.is_steady(self._clock.monotonic()):
                jobs = self._store.workers.bury_if_expired(worker, "its lease ran out")
                if jobs is not None:
                    buried.append((worker, len(jobs)))
        return buried
