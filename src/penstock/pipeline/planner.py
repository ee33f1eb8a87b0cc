"""The planner: the first stage of every backfill, which makes its windows jobs chunk by chunk.

How far it has come is a cursor of the run, committed with the chunk. While enough is queued ahead it
steps aside and comes back later, so the queue is as short for a million units as for a thousand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from penstock.counting import count
from penstock.jobs.effects import Mark
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Snooze
from penstock.jobs.windows import Window, Windows, gaps, windows_of

if TYPE_CHECKING:
    from penstock.pipeline.attempt import Attempt

# No function can have this name, so no step has it.
PLANNER = "plan-windows"
CURSOR = "~plan"
CHUNK_UNITS = 1000
AHEAD_JOBS = 2000
SHORTEST_S, LONGEST_S = 0.2, 30.0


class Surveyor(Protocol):
    """What the engine tells a planner."""

    async def cursors(self, job: Claimed) -> dict[str, Any]: ...

    async def backlog(self, job: Claimed) -> tuple[int, int]:
        """How many jobs the planner has made that still wait or run, and how many have ended."""
        ...

    async def covered(
        self, job: Claimed, partitions: Sequence[str], start_at: float, end_at: float
    ) -> Sequence[tuple[str, float, float]]:
        """What is ingested of a stretch of time, in the order of its starts."""
        ...


class PlanProgress(msgspec.Struct, frozen=True):
    """How far a plan has come: the next unit, and how much had been done when it was noted."""

    next: int = 0
    ended: int = 0
    at: float = 0.0


async def plan_windows(attempt: Attempt) -> AsyncIterator[dict[str, str]]:
    """The units of the attempt's run, from where the one before it ended."""
    surveyor = cast(Surveyor, attempt.services)
    options = attempt.run.options
    windows = windows_of(options)
    known = (await surveyor.cursors(attempt.job)).get(CURSOR)
    progress = PlanProgress() if known is None else msgspec.convert(known, PlanProgress)
    while progress.next < windows.total:
        waiting, ended = await surveyor.backlog(attempt.job)
        now = attempt.clock.now()
        if waiting >= AHEAD_JOBS:
            delay_s = _pause_s(waiting, ended - progress.ended, now - progress.at)
            raise Snooze(delay_s, f"{count(waiting, 'unit')} queued ahead")
        last = min(progress.next + CHUNK_UNITS, windows.total)
        if options.is_missing_only:
            for unit in await _missing(surveyor, attempt.job, windows, progress.next, last):
                yield unit.item()
        else:
            for unit in windows.units(progress.next, last):
                yield unit.item()
        progress = PlanProgress(last, ended, now)
        attempt.effects.marks.append(Mark(CURSOR, msgspec.json.encode(progress)))
        await attempt.commit()


async def _missing(
    surveyor: Surveyor, job: Claimed, windows: Windows, first: int, last: int
) -> list[Window]:
    units = list(windows.units(first, last))
    if not units:
        return []
    names = list(dict.fromkeys(unit.partition for unit in units))
    start_at, end_at = units[0].start_at, units[-1].end_at
    covered: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for partition, begins_at, ends_at in await surveyor.covered(job, names, start_at, end_at):
        covered[partition].append((begins_at, ends_at))
    return [gap for unit in units for gap in gaps(unit, covered[unit.partition])]


def _pause_s(waiting: int, ended: int, since_s: float) -> float:
    """How long it takes until half of what is allowed is queued, at the pace there was so far."""
    if ended <= 0 or since_s <= 0:
        return 1.0
    wanted_s = (waiting - AHEAD_JOBS / 2) * since_s / ended
    return min(LONGEST_S, max(SHORTEST_S, wanted_s))
