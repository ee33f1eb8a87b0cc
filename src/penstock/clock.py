"""The clock, as an argument: rooms are handed one and never read the time themselves. And times as text."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

_END_OF_CALENDAR = datetime(9999, 12, 30, tzinfo=UTC).timestamp()


class Clock(Protocol):
    """`now` is UTC in seconds since the epoch; `monotonic` never steps."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...


class SyncedClock:
    """The time of another clock, carried forward by how long ago it was told.

    A worker lives by its store's time: its own machine's may be an hour off, or step while it works.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = clock.now() - clock.monotonic()

    def sync(self, now: float) -> None:
        """It is `now` by the clock that counts."""
        self._ahead = now - self._clock.monotonic()

    def now(self) -> float:
        return self._clock.monotonic() + self._ahead

    def monotonic(self) -> float:
        return self._clock.monotonic()


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


def iso(at: float | None) -> str | None:
    """A time for programs: UTC, to the millisecond; None when there is none."""
    return moment(at).isoformat(timespec="milliseconds")[:-6] + "Z" if at else None


def moment(at: float) -> datetime:
    """A time as a date. A step may ask to be run again in a million years; the calendar ends before that."""
    return datetime.fromtimestamp(min(at, _END_OF_CALENDAR), UTC)
