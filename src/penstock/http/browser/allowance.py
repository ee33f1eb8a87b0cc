"""The time that a page has: it stands still while a request of it waits for its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class OutOfTime(Exception):
    """The page's time is over."""


class Allowance:
    def __init__(self, seconds: float) -> None:
        self._left_s = seconds
        self._held = 0
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()
        self._over = asyncio.Event()
        self._timer = self._loop.call_later(seconds, self._over.set)

    def hold(self) -> None:
        self._held += 1
        if self._held == 1:
            self._timer.cancel()
            self._left_s -= self._loop.time() - self._since

    def go(self) -> None:
        self._held -= 1
        if self._held == 0:
            self._since = self._loop.time()
            self._timer = self._loop.call_later(max(0.0, self._left_s), self._over.set)

    async def within(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work comes to; OutOfTime if that takes longer than what is left."""
        working = asyncio.ensure_future(work)
        over = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({working, over}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise OutOfTime
            return working.result()
        finally:
            over.cancel()
            if not working.done():
                working.cancel()
                await asyncio.wait({working})
