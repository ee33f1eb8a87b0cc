"""Room in memory: how many bytes of messages the jobs of a source hold at the same time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Room:
    """So many bytes, taken in the order of asking. One that is larger than all of it has it alone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def take(self, size: int) -> AsyncIterator[None]:
        needed = min(size, self._most)
        if self._waiting or needed > self._left:
            await self._wait(needed)
        else:
            self._left -= needed
        try:
            yield
        finally:
            self._give(needed)

    async def _wait(self, needed: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((needed, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give(needed)
            raise

    def _give(self, freed: int) -> None:
        self._left += freed
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self._left):
            needed, turn = self._waiting.popleft()
            if not turn.done():
                self._left -= needed
                turn.set_result(None)
