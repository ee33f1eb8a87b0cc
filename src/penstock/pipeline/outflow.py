"""What a run-level attempt yields is written in chunks while the step goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.jobs.effects import Announced, Effects
from penstock.jobs.effects.effects import saved_bytes
from penstock.jobs.job import NewJob

if TYPE_CHECKING:
    from penstock.pipeline.attempt import Attempt

CHUNK_ITEMS = 500
CHUNK_S = 0.25
# What a chunk may grow to while the one before it is on its way to the disk.
MOST_ITEMS = 2_000
MOST_BYTES = 4_000_000


class Outflow:
    """Buffers up to CHUNK_ITEMS or for CHUNK_S, whichever comes first; one chunk is written at a time.

    While it is, the next one may grow: a step that is faster than the disk is written in larger chunks
    instead of waiting for each of many small ones.

    Children go out as soon as they like: a repeated step yields them again harmlessly. Records,
    checkpoints, signals and notes wait until the root step asks for its next item, so that a
    checkpoint never becomes durable before what it stands for.
    """

    def __init__(
        self,
        attempt: Attempt,
        loop: asyncio.AbstractEventLoop,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._attempt = attempt
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._on_failure = on_failure
        self._outbox = Effects()
        self._items = 0
        self._bytes = 0
        # A step in a thread adds while the loop's timer takes.
        self._swap = threading.Lock()
        self._turn = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._writer: asyncio.Task[None] | None = None
        # What the writer was given and has not begun to write.
        self._given = Effects()

    @property
    def is_full(self) -> bool:
        """Whether a chunk is to go out now, even if the step must wait for the one before it."""
        if self._items >= CHUNK_ITEMS and self._is_idle:
            return True
        return self._items >= MOST_ITEMS or self._bytes >= MOST_BYTES

    @property
    def _is_idle(self) -> bool:
        return self._writer is None or self._writer.done()

    def add(self, child: NewJob) -> None:
        with self._swap:
            is_first = not self._outbox
            self._outbox.children.append(child)
            self._items += 1
            self._bytes += len(child.item)
        if is_first:
            self._start_clock()

    def announce(self, announced: Announced) -> None:
        with self._swap:
            is_first = not self._outbox
            self._outbox.announced.append(announced)
            self._items += 1
        if is_first:
            self._start_clock()

    def seal(self) -> None:
        """The root step's item has been walked to its end: what was buffered for it may go out."""
        buffered = self._attempt.effects
        if not buffered:
            return
        with self._swap:
            is_first = not (self._items or self._outbox)
            self._items += buffered.size
            self._bytes += saved_bytes(buffered)
            self._outbox.pour(buffered)
            self._attempt.let_go()
        if is_first:
            self._start_clock()

    async def flush(self) -> None:
        """Write what is ready; waits for the chunk before it."""
        await self._written()
        async with self._turn:
            await self._write(self._take())

    async def relieve(self) -> None:
        """Make room: the chunk that is full goes out while the step fills the next one.

        Waits for the chunk before it, so no more than two are ever held.
        """
        await self._written()
        if self.is_full:
            self.stop_clock()
            self._start_writer()
            # Let it begin: what has been handed to the store is kept even if the step fails next.
            await asyncio.sleep(0)

    async def flush_all(self) -> None:
        """Write everything, sealed or not."""
        self.seal()
        await self.flush()

    async def finish(self) -> None:
        """Wait for the chunk under way, and hand the rest back for the end of the attempt."""
        self.stop_clock()
        await self._written()
        async with self._turn:
            self.seal()
            self._attempt.effects.pour(self._take())
        self.stop_clock()

    def waiting(self) -> tuple[Effects, Effects]:
        """What is buffered here and has not been handed to the store."""
        return self._outbox, self._given

    def stop(self) -> None:
        """Write nothing more: the attempt was stopped."""
        self.stop_clock()
        if self._writer is not None:
            self._writer.cancel()

    def stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_clock(self) -> None:
        if threading.get_ident() == self._loop_thread:
            self._arm()
        else:
            self._loop.call_soon_threadsafe(self._arm)

    def _arm(self) -> None:
        if self._timer is None and not self._attempt.is_fenced:
            self._timer = self._loop.call_later(CHUNK_S, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._is_idle:
            self._start_writer()

    def _start_writer(self) -> None:
        self._given = self._take()
        self._writer = self._loop.create_task(self._write_behind())

    async def _written(self) -> None:
        """Wait for the chunk that is being written behind the step's back."""
        if self._writer is not None and not self._writer.done():
            await asyncio.wait({self._writer})

    async def _write_behind(self) -> None:
        try:
            async with self._turn:
                await self._write(self._given.take())
        except Exception as error:
            self._on_failure(error)

    async def _write(self, chunk: Effects) -> None:
        self.stop_clock()
        if chunk:
            await self._attempt.write(chunk)

    def _take(self) -> Effects:
        with self._swap:
            self._items = self._bytes = 0
            return self._outbox.take()
