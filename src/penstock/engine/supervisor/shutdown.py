"""Whether a supervisor is coming to its end, why, and how long its workers have for theirs."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from penstock.clock import Clock

# A worker that was told to leave and has not left this long after its grace is ended.
OVERTIME_S = 0.4


class Shutdown:
    """Asked for by a person or a program, or because the work is done."""

    def __init__(self, clock: Clock, grace_s: float) -> None:
        self._clock = clock
        self._grace_s = grace_s
        self._leaving = asyncio.Event()
        # How often it was told to stop: the second time, at once.
        self.stops = 0
        self.is_done = False
        self.kill_at = float("inf")

    @property
    def is_leaving(self) -> bool:
        return self.stops > 0 or self.is_done

    def stop(self) -> None:
        """Drain; asked again, stop at once."""
        self.stops += 1
        self._limit(self._grace_s if self.stops == 1 else 0.0)
        self._leaving.set()

    def finish(self) -> None:
        """The work is done."""
        self.is_done = True
        self._leaving.set()

    def make_way(self) -> None:
        """Finish what runs, within its grace, so that another can begin."""
        self._limit(self._grace_s)
        self.finish()

    async def wait(self, longest_s: float) -> None:
        """Until it is leaving, or for so long."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._leaving.wait(), longest_s)

    def _limit(self, grace_s: float) -> None:
        self.kill_at = self._clock.monotonic() + grace_s + OVERTIME_S
