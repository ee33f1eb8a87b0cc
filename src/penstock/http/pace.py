"""Long parsing, in slices on the event loop or in a thread, with rests: the loop is everybody's.

All parsing of a worker shares one allowance of the loop's time, so that neither one endless document nor
many short ones take the loop from other sources. What counts is how long a slice held the loop, and not
its CPU time: on a busy machine a slice is longer for those who wait, so the rest after it is longer, too.

Rests are for others. While no other source has an attempt under way, parsing goes on after each slice as
soon as the loop has seen to what was ready, and nothing is taken from the allowance.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sized
from time import perf_counter, thread_time
from typing import TypeVar
from weakref import WeakKeyDictionary

# Others get the loop at the latest after this much work.
TURN_S = 0.001
# So much is done without a rest, about ten thousand pages of a sitemap; after that, this share of the time.
BURST_S = 0.1
SHARE = 0.1
# What one entry costs the loop on its way to the step: an estimate, because others may have turns meanwhile.
ENTRY_S = 1e-6

T = TypeVar("T")
B = TypeVar("B", bound=Sized)


class LoopShare:
    """What parsing may still take of one loop. Grows with that loop's own time, virtual or not."""

    def __init__(self) -> None:
        # One rests at a time: those that wake together would work one after the other without a rest.
        self.turn = asyncio.Lock()
        self.has_company: Callable[[], bool] = lambda: False
        self._left_s = BURST_S
        self._at: float | None = None

    def charge(self, spent_s: float, now: float) -> float:
        """Take the time that was worked; answers with how long to rest."""
        grown_s = 0.0 if self._at is None else (now - self._at) * SHARE
        self._at = now
        self._left_s = min(BURST_S, self._left_s + grown_s) - spent_s
        return max(0.0, -self._left_s / SHARE)


_allowances: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopShare] = WeakKeyDictionary()


def rest_beside(has_company: Callable[[], bool]) -> None:
    """From now on, parsing on this loop rests while this says that more than one source is at work."""
    _allowance(asyncio.get_running_loop()).has_company = has_company


async def rest_after(held_s: float) -> None:
    """Let others have the loop after it was held for this long, for as long as is fair."""
    loop = asyncio.get_running_loop()
    allowance = _allowance(loop)
    if not allowance.has_company():
        await asyncio.sleep(0)
        return
    async with allowance.turn:
        await asyncio.sleep(allowance.charge(held_s, loop.time()))


def owe(held_s: float) -> None:
    """Take what can't rest itself from the allowance of the loop that it held, if it held one."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    allowance = _allowance(loop)
    if allowance.has_company():
        allowance.charge(held_s, loop.time())


def _allowance(loop: asyncio.AbstractEventLoop) -> LoopShare:
    allowance = _allowances.get(loop)
    if allowance is None:
        allowance = _allowances[loop] = LoopShare()
    return allowance


async def paced(work: Iterator[B]) -> AsyncIterator[B]:
    """What the iterator yields, if it is not empty. Others get the loop between its steps."""
    turn_s, clock = 0.0, _clock_of(asyncio.get_running_loop())
    began = clock()
    for batch in work:
        now = clock()
        turn_s += now - began
        if batch:
            turn_s += len(batch) * ENTRY_S
            yield batch
            now = clock()
        if turn_s >= TURN_S:
            await rest_after(turn_s)
            turn_s, now = 0.0, clock()
        began = now
    await rest_after(turn_s)


def _clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Real time; on a loop of virtual time its own, or a busy machine would change what happens there."""
    return loop.time if getattr(loop, "is_virtual", False) else perf_counter


class Aside:
    """Work that can't be cut into slices: in a thread, one piece at a time, with a rest after each.

    A thread holds up the loop as well, for milliseconds at a time, whenever both have Python code to run.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def do(self, work: Callable[[], T]) -> T:
        async with self._turn:
            done, spent_s = await asyncio.to_thread(timed, work)
            await rest_after(spent_s)
        return done


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What the work came to, and its CPU time in this thread."""
    began = thread_time()
    return work(), thread_time() - began
