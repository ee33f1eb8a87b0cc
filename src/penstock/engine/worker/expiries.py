"""When attempts that are tasks on the loop run out of time: one timer for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import isinf
from typing import Protocol


class Expiring(Protocol):
    def expire(self) -> None: ...


class Expiries:
    """By attempt, on the clock of the loop. The timer is set for the first that may expire."""

    def __init__(self, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._loop = loop
        self._ends: dict[Expiring, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def set(self, attempt: Expiring, in_s: float) -> None:
        """Have this attempt expire in so many seconds, and not when it was to before."""
        if isinf(in_s):
            return  # somebody else keeps its time
        loop = self._loop()
        self._ends[attempt] = at = loop.time() + in_s
        if self._timer is None or at < self._timer.when():
            self._arm(loop, at)

    def postpone(self, attempt: Expiring, by_s: float) -> None:
        """Nothing happens to an attempt that has no end any more."""
        at = self._ends.get(attempt)
        if at is not None:
            self.set(attempt, max(0.0, at - self._loop().time() + by_s))

    def drop(self, attempt: Expiring) -> None:
        self._ends.pop(attempt, None)

    def _arm(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(at, self._look, at)

    def _look(self, until: float) -> None:
        """Let those expire whose time has come; the timer may have been set for one that ended long ago."""
        self._timer = None
        loop = self._loop()
        until = max(until, loop.time())
        for attempt in [attempt for attempt, at in self._ends.items() if at <= until]:
            self.drop(attempt)
            attempt.expire()
        if self._ends:
            self._arm(loop, min(self._ends.values()))
