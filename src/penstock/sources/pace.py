"""Pacing: requests of one source spread evenly over time (GCRA with a burst of one)."""

from __future__ import annotations


class Pace:
    """Knows when the next request may go; the caller waits, this only reckons."""

    def __init__(self) -> None:
        self._free_at = float("-inf")

    def wait_s(self, now: float) -> float:
        """How long a request that came now would have to wait."""
        return max(0.0, self._free_at - now)

    def reserve(self, now: float, rate_per_s: float) -> float:
        """Take the next place in time and say how long to wait for it."""
        wait_s = self.wait_s(now)
        self._free_at = now + wait_s + 1.0 / rate_per_s
        return wait_s
