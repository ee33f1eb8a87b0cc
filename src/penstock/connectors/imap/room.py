"""Room in memory: how many bytes of messages the jobs of a source hold at the same time."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType


class Room:
    """So many bytes, taken in the order of asking. One that is larger than all of it has it alone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def take(self, size: int) -> Share:
        """`async with room.take(size)`: these bytes, as soon as there is room for them."""
        return Share(self, min(size, self._most))

    async def enter(self, needed: int) -> None:
        if self._waiting or needed > self._left:
            await self._wait(needed)
        else:
            self._left -= needed

    async def _wait(self, needed: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((needed, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give(needed)
            raise

    def give(self, freed: int) -> None:
        self._left += freed
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self._left):
            needed, turn = self._waiting.popleft()
            if not turn.done():
                self._left -= needed
                turn.set_result(None)


class Share:
    """A part of the room, for as long as its block. A class: each message has one."""

    __slots__ = ("_needed", "_room")

    def __init__(self, room: Room, needed: int) -> None:
        self._room, self._needed = room, needed

    async def __aenter__(self) -> None:
        await self._room.enter(self._needed)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._room.give(self._needed)
