"""Long parsing on the event loop, in slices, with rests: the loop is everybody's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from time import thread_time
from typing import TypeVar

# Others get the loop at the latest after this much work.
TURN_S = 0.002
# So much is done without a rest: a sitemap of some ten thousand pages.
FREE_S = 0.5
# After that, a rest is this many times as long as the work before it.
REST = 2.0

T = TypeVar("T")


class Pace:
    """How much of the loop one walk or feed has had, in CPU time: a busy machine is no matter."""

    def __init__(self) -> None:
        self._worked_s = 0.0
        self._turn_s = 0.0

    async def through(self, work: Iterator[T]) -> AsyncIterator[T]:
        """What the iterator yields. Others get the loop between its steps, and more than half of it
        once the work has become long."""
        while True:
            began = thread_time()
            item = next(work, None)
            self._turn_s += thread_time() - began
            if item is None:
                return
            yield item
            if self._turn_s >= TURN_S:
                await self._rest()

    async def _rest(self) -> None:
        self._worked_s += self._turn_s
        rest_s = 0.0 if self._worked_s < FREE_S else self._turn_s * REST
        self._turn_s = 0.0
        await asyncio.sleep(rest_s)
