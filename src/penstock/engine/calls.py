"""Where the two colours meet: the engine is asyncio, the store is synchronous and has one thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

Answer = TypeVar("Answer")


class Calls(Protocol):
    """Calls the store from a coroutine, one call at a time."""

    async def __call__(self, verb: Callable[[], Answer]) -> Answer: ...

    def close(self) -> None: ...


class InOneThread:
    """Every call in the same thread, so that waiting for the disk never blocks the loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    async def __call__(self, verb: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, verb)

    def close(self) -> None:
        self._thread.shutdown(wait=True)


class Inline:
    """Every call at once, on the loop: no threads, so a simulation is the same each time."""

    async def __call__(self, verb: Callable[[], Answer]) -> Answer:
        return verb()

    def close(self) -> None:
        return None
