"""When the store can't be written: wait, say so once a minute, lose nothing, go on by itself."""

from __future__ import annotations

import random
from collections.abc import Callable

from penstock.clock import Clock
from penstock.errors import StoreCorrupt, StoreError, StoreFull, StoreIoError, StoreUnreachable
from penstock.store.store import Store

RETRY_S = 1.0
# A server that is away is asked again soon, then less and less often, and for ever.
FIRST_S = 0.1
LONGEST_S = 2.0
REPEAT_S = 60.0
MAX_IO_ERRORS = 5


class StoreBackoff:
    """How long a worker waits after its store has failed, and what it says of that."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        tell: Callable[[str], None],
        rng: random.Random | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._tell = tell
        self._rng = rng or random.Random()
        self._misses = 0
        self._told: dict[str, float] = {}
        self._io_errors = 0
        self._must_reopen = False
        self.is_full = False

    def wait_s(self, error: StoreError) -> float:
        """The turn failed and was rolled back: how long to wait; raises what can't be waited for."""
        if isinstance(error, StoreFull):
            return self._full()
        if isinstance(error, StoreIoError):
            return self._io(error)
        if isinstance(error, StoreUnreachable):
            return self._away(error)
        if isinstance(error, StoreCorrupt):
            raise error
        self._say(error.message)
        return RETRY_S

    def mend(self) -> None:
        """In the store's thread, before the next try: trust nothing that a failed sync left in memory."""
        if self._must_reopen:
            self._store.reopen()
            self._must_reopen = False

    def regain(self) -> None:
        """In the store's thread, after a turn was written: what ended has its place, now the reserve."""
        if self.is_full:
            self.is_full = not self._store.reserve.hold()
            if not self.is_full:
                self._say("there is space again: resuming")

    def is_over(self) -> None:
        """The store has been written again."""
        if self._misses:
            self._say("the database answers again: resuming", "back")
        self._io_errors = self._misses = 0

    def _full(self) -> float:
        self._say("the disk is full: nothing is lost, nothing new is started; waiting for space")
        self._store.reserve.release()
        self.is_full = True
        return RETRY_S

    def _io(self, error: StoreIoError) -> float:
        self._io_errors += 1
        if self._io_errors >= MAX_IO_ERRORS:
            raise error
        self._say(error.message)
        self._must_reopen = True
        return RETRY_S

    def _away(self, error: StoreUnreachable) -> float:
        """Spread out, so that a server that comes back is not asked by everybody at once."""
        self._say(error.message, "away")
        most_s = min(LONGEST_S, FIRST_S * (1 << self._misses))
        self._misses = min(self._misses + 1, 10)
        return most_s * self._rng.uniform(0.5, 1.0)

    def _say(self, text: str, matter: str = "") -> None:
        """Once a minute, also when the same matter is met in other words."""
        now, matter = self._clock.monotonic(), matter or text
        if now - self._told.get(matter, -REPEAT_S) >= REPEAT_S:
            self._told[matter] = now
            self._tell(text)
