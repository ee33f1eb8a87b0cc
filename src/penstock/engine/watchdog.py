"""The watchdog: ends a worker whose event loop is stuck in a step that has had its time.

A step that blocks the loop can't be cancelled by anything on the loop, its own timeout included.
A thread can still see that the loop does not move; the supervisor does the rest.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

from penstock.clock import Clock

PULSE_S = 1.0
PATIENCE_S = 5.0
EXIT_STUCK = 10


class Watchdog:
    """Watches one loop from a thread. The loop calls `pulse`; when it stops doing so, time counts."""

    def __init__(self, clock: Clock, give_up: Callable[[str], None] | None = None) -> None:
        self._clock = clock
        self._give_up = give_up or _leave
        self._pulsed_at = clock.monotonic()
        self._deadline = float("inf")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def pulse(self, earliest_deadline: float) -> None:
        """The loop moves; this is when the first of its running attempts runs out of time."""
        self._deadline = earliest_deadline
        self._pulsed_at = self._clock.monotonic()

    def is_stuck(self) -> bool:
        """Whether the loop has stood still past the time of an attempt it is performing."""
        now = self._clock.monotonic()
        return now > max(self._pulsed_at, self._deadline) + PATIENCE_S

    def _watch(self) -> None:
        while not self._ended.wait(PULSE_S):
            if self.is_stuck():
                self._give_up("a step blocked the worker's event loop beyond its timeout")
                return


def _leave(reason: str) -> None:
    print(reason, file=sys.stderr, flush=True)
    os._exit(EXIT_STUCK)
