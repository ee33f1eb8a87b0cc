"""Due: what becomes of the ticks that have come since somebody last looked."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import Literal

from penstock.schedules.schedule import Schedule

# A tick that is looked at so late is as good as on time: it is not taken for missed.
GRACE_S = 60.0
# So many ticks are looked at in one go; after a long time away there may be more of them.
TICKS = 20_000

Missed = Literal["once", "skip", "all"]


@dataclass(frozen=True, slots=True)
class Due:
    """The ticks that are over, the one to start something for, and the first that is left."""

    passed: tuple[float, ...]
    fires: float | None
    next_due_at: float | None


def what_is_due(
    schedule: Schedule, missed: Missed, first: float, now: float, limit: int = TICKS
) -> Due:
    """Judge the ticks from the first one on that are not in the future.

    Each is counted from the one before and not from now, so that intervals keep their interval. What
    is left may be due too: then there were more than the limit, or each is to have a run of its own.
    """
    if missed == "all":
        return Due((), first, schedule.next_due(first))
    ticks = [first]
    while (later := schedule.next_due(ticks[-1])) is not None and later <= now:
        if len(ticks) == limit:
            return Due(tuple(ticks), None, later)
        ticks.append(later)
    if missed == "skip" and is_late(ticks[-1], now):
        return Due(tuple(ticks), None, later)
    return Due(tuple(ticks[:-1]), ticks[-1], later)


def is_late(due_at: float, now: float) -> bool:
    """Whether it is so long past that nobody can have been there to start it."""
    return now - due_at > GRACE_S


def is_behind(schedule: Schedule, due_at: float, now: float) -> bool:
    """Whether the tick after this one is due too: then nobody looked when this one was."""
    later = schedule.next_due(due_at)
    return later is not None and later <= now


class Ticking:
    """A schedule whose moments are whole milliseconds, never early: what a database gives back unchanged."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule

    def next_due(self, after: float) -> float | None:
        due = self._schedule.next_due(after)
        return None if due is None else max(ceil(due * 1000.0), floor(after * 1000.0) + 1) / 1000.0

    def words(self) -> str:
        return self._schedule.words()
