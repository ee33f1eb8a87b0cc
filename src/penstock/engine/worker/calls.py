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


class InThreads:
    """Calls in a few threads, so that waiting for a disk or a server never blocks the loop."""

    def __init__(self, name: str, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._under_way = 0

    @property
    def is_idle(self) -> bool:
        """No call is under way, so the loop may touch what the thread works on."""
        return self._under_way == 0

    async def __call__(self, verb: Callable[[], Answer]) -> Answer:
        self._under_way += 1
        # Counted down when the thread is done with it, not when the caller stops waiting.
        call = asyncio.get_running_loop().run_in_executor(self._threads, verb)
        call.add_done_callback(self._done)
        return await asyncio.shield(call)

    def _done(self, call: asyncio.Future[Answer]) -> None:
        self._under_way -= 1
        if not call.cancelled():
            call.exception()

    def close(self) -> None:
        self._threads.shutdown(wait=True)


class InOneThread(InThreads):
    """Every call in the same thread: one at a time, in order."""

    def __init__(self, name: str = "store") -> None:
        super().__init__(name, 1)


class Inline:
    """Every call at once, on the loop: no threads, so a simulation is the same each time."""

    async def __call__(self, verb: Callable[[], Answer]) -> Answer:
        return verb()

    def close(self) -> None:
        return None
