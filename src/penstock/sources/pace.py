"""Long parsing, in slices on the event loop or in a thread, with rests: the loop is everybody's.

All parsing of a worker shares one allowance of CPU time, so that neither one endless document nor
many short ones take the loop from other sources. Counts CPU time: a busy machine is no matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sized
from time import thread_time
from typing import TypeVar
from weakref import WeakKeyDictionary

# Others get the loop at the latest after this much work.
TURN_S = 0.001
# So much is done without a rest, about ten thousand pages of a sitemap; after that, this share of the time.
BURST_S = 0.1
SHARE = 0.2

T = TypeVar("T")
B = TypeVar("B", bound=Sized)


class Allowance:
    """What parsing may still take of one loop. Grows with that loop's own time, virtual or not."""

    def __init__(self) -> None:
        # One rests at a time: those that wake together would work one after the other without a rest.
        self.turn = asyncio.Lock()
        self._left_s = BURST_S
        self._at: float | None = None

    def charge(self, spent_s: float, now: float) -> float:
        """Take the time that was worked; answers with how long to rest."""
        grown_s = 0.0 if self._at is None else (now - self._at) * SHARE
        self._at = now
        self._left_s = min(BURST_S, self._left_s + grown_s) - spent_s
        return max(0.0, -self._left_s / SHARE)


_allowances: WeakKeyDictionary[asyncio.AbstractEventLoop, Allowance] = WeakKeyDictionary()


async def rest_after(spent_s: float) -> None:
    """Let others have the loop after this much CPU time, for as long as is fair."""
    loop = asyncio.get_running_loop()
    allowance = _allowances.get(loop)
    if allowance is None:
        allowance = _allowances[loop] = Allowance()
    async with allowance.turn:
        await asyncio.sleep(allowance.charge(spent_s, loop.time()))


async def paced(work: Iterator[B]) -> AsyncIterator[B]:
    """What the iterator yields, if it is not empty. Others get the loop between its steps."""
    turn_s = 0.0
    began = thread_time()
    for batch in work:
        now = thread_time()
        turn_s += now - began
        if batch:
            yield batch
            now = thread_time()
        if turn_s >= TURN_S:
            await rest_after(turn_s)
            turn_s, now = 0.0, thread_time()
        began = now
    await rest_after(turn_s)


class Aside:
    """Work that can't be cut into slices: in a thread, one piece at a time, with a rest after each.

    A thread holds up the loop as well, for milliseconds at a time, whenever both have Python code to run.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def do(self, work: Callable[[], T]) -> T:
        async with self._turn:
            done, spent_s = await asyncio.to_thread(_timed, work)
            await rest_after(spent_s)
        return done


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = thread_time()
    return work(), thread_time() - began
