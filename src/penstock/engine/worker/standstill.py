"""Standstill: the time of an attempt does not pass while it waits for what it shares with others.

A source must not lose its tries because another one on the same host is busy. The wait itself is bounded:
a request that is not let out for long leaves, and so does an attempt that only ever waits.
"""

from __future__ import annotations

# A single wait ends before this, with a place or without.
LONGEST_S = 60.0
# All waits of one attempt together; after that its time passes while it waits, too.
LONGEST_IN_ALL_S = 3600.0


class Standstill:
    """The waits of one attempt, of which several may go on at once."""

    __slots__ = ("_began", "_left_s", "_stood_s", "_waits")

    def __init__(self) -> None:
        self._waits = 0
        self._began = 0.0
        self._left_s = 0.0
        self._stood_s = 0.0

    def begin(self, now: float, deadline: float) -> float:
        """A wait begins: the deadline from now on, moved so far that this wait can't reach it."""
        if self._waits == 0:
            self._began, self._left_s = now, deadline - now
        self._waits += 1
        if self._stood_s + now - self._began > LONGEST_IN_ALL_S:
            return deadline
        return now + self._left_s + LONGEST_S

    def end(self, now: float, deadline: float) -> float:
        """A wait ends; after the last one the attempt has as much time left as before the first."""
        self._waits -= 1
        if self._waits:
            return deadline
        self._stood_s += now - self._began
        return min(deadline, now + self._left_s)
