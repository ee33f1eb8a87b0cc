"""The clock, as an argument: rooms are handed one and never read the time themselves."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """`now` is UTC in seconds since the epoch; `monotonic` never steps."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()
