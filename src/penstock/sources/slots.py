"""How many requests one host answers at a time."""

from __future__ import annotations

import asyncio
from collections import deque


class HostSlots:
    """Counts the requests in flight per host; those over the limit wait in line."""

    def __init__(self) -> None:
        self._busy: dict[str, int] = {}
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}

    async def take(self, host: str, limit: int) -> None:
        """Return when fewer than `limit` requests to this host are in flight, counting this one."""
        while self._busy.get(host, 0) >= limit:
            await self._wait(host)
        self._busy[host] = self._busy.get(host, 0) + 1

    def give(self, host: str) -> None:
        left = self._busy[host] - 1
        if left:
            self._busy[host] = left
        else:
            del self._busy[host]
        self._wake(host)

    async def _wait(self, host: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._lines.setdefault(host, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # Woken and cancelled at once: the turn must not be lost to those behind.
                self._wake(host)
            raise

    def _wake(self, host: str) -> None:
        line = self._lines.get(host)
        while line:
            turn = line.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._lines.pop(host, None)
