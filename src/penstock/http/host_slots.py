"""How many requests of one source are under way at one host, in this process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

Place = tuple[str, str]


class HostSlots:
    """Counts the requests under way by host and source; those over the source's limit wait in line.

    Sources do not wait for each other here. What all of them share at a host is `hosts` in penstock.yaml.
    """

    def __init__(self) -> None:
        self._busy: dict[Place, int] = {}
        self._lines: dict[Place, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def taken(self, place: Place, limit: int) -> AsyncIterator[None]:
        await self.take(place, limit)
        try:
            yield
        finally:
            self.give(place)

    async def take(self, place: Place, limit: int) -> None:
        """Return when fewer than `limit` requests have this place, counting this one."""
        while self._busy.get(place, 0) >= limit:
            await self._wait(place)
        self._busy[place] = self._busy.get(place, 0) + 1

    def give(self, place: Place) -> None:
        left = self._busy[place] - 1
        if left:
            self._busy[place] = left
        else:
            del self._busy[place]
        self._wake(place)

    async def _wait(self, place: Place) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._lines.setdefault(place, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # Woken and cancelled at once: the turn must not be lost to those behind.
                self._wake(place)
            raise

    def _wake(self, place: Place) -> None:
        line = self._lines.get(place)
        while line:
            turn = line.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._lines.pop(place, None)
