"""The watchdog: ends a worker whose event loop is stuck in a step that has had its time.

A step that blocks the loop can't be cancelled by anything on the loop, its own timeout included.
A thread can still see that the loop does not move, unless the step holds the interpreter's lock: then
not even the thread runs, and the supervisor sees it, by the deadlines that they share.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Protocol

from penstock.clock import Clock
from penstock.engine.worker.exits import EXIT_STUCK
from penstock.pipeline.error_outcome import is_users_code

PULSE_S = 1.0
# How long a loop may stand still beyond the time of an attempt; the supervisor waits longer, because the
# watchdog knows more about what went wrong.
PATIENCE_S = 5.0
SUPERVISORS_PATIENCE_S = 8.0
# Who looked this long after its last look has slept itself, and has seen nothing of the meantime.
SLEPT_S = 3.0


class Pulse(Protocol):
    """Deadlines that may be read while the loop stands still."""

    @property
    def earliest(self) -> float: ...

    def overdue(self, now: float) -> list[int]: ...


class StuckLoop:
    """Tells whether a loop has stood still past the time of an attempt, by who looks again and again."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._looked_at: float | None = None
        self._trusted_at = float("-inf")

    def is_stuck(self, now: float, pulsed_at: float, deadline: float) -> bool:
        if self._looked_at is None or now - self._looked_at > SLEPT_S:
            self.excuse(now)
        self._looked_at = now
        return now > max(pulsed_at, deadline, self._trusted_at) + self._patience_s

    def excuse(self, now: float) -> None:
        """Who looks has slept, or who is looked at was stopped: its time counts from now."""
        self._trusted_at = now


class Watchdog:
    """Watches one loop from a thread. The loop calls `pulse`; when it stops doing so, time counts."""

    def __init__(
        self, clock: Clock, deadlines: Pulse, give_up: Callable[[str], None] | None = None
    ) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._give_up = give_up or leave
        self._pulsed_at = clock.monotonic()
        self._stuck = StuckLoop(PATIENCE_S)
        self._loop_thread = threading.get_ident()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Called on the loop's own thread, which is the one that is watched."""
        self._loop_thread = threading.get_ident()
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def pulse(self) -> None:
        """The loop moves."""
        self._pulsed_at = self._clock.monotonic()

    def is_stuck(self) -> bool:
        """Whether the loop has stood still past the time of an attempt it is performing."""
        deadline = self._deadlines.earliest
        return self._stuck.is_stuck(self._clock.monotonic(), self._pulsed_at, deadline)

    def _watch(self) -> None:
        while not self._ended.wait(PULSE_S):
            if self.is_stuck():
                self._give_up(self.verdict())
                return

    def verdict(self) -> str:
        """What is known of it: the line of the step's code at which the loop stands, else the jobs."""
        place = _place(sys._current_frames().get(self._loop_thread))
        overdue = self._deadlines.overdue(self._clock.monotonic())
        jobs = f" ({'job' if len(overdue) == 1 else 'jobs'} {_listed(overdue)})" if overdue else ""
        at = f" at {place}" if place else ""
        return f"a step blocks the event loop past its timeout{at}{jobs}"


def leave(reason: str) -> None:
    """End the process, with a line that needs no lock that a step may hold."""
    text = reason.encode("utf-8", "backslashreplace") + b"\n"
    try:
        os.write(2, text)
    finally:
        os._exit(EXIT_STUCK)


def _place(frame: FrameType | None) -> str:
    while frame is not None:
        name = frame.f_code.co_filename
        if is_users_code(name):
            return f"{os.path.basename(name)}:{frame.f_lineno} in {frame.f_code.co_name}()"
        frame = frame.f_back
    return ""


def _listed(jobs: list[int], most: int = 5) -> str:
    shown = ", ".join(map(str, jobs[:most]))
    return shown if len(jobs) <= most else f"{shown} and {len(jobs) - most} more"
