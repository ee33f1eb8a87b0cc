"""A relay on loopback that leads to one place and fails on command: for faults on purpose, never for work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

CHUNK_BYTES = 1 << 16
PATIENCE_S = 10.0


class Relay:
    """Passes on bytes in both directions, and understands none of them; a context manager.

    `cut` ends every connection, `freeze` holds everything back, `refuse` lets nobody in, `heal` ends it all.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self.accepted = 0
        self.port = 0
        self._lines: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._is_ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._is_ready.wait(PATIENCE_S):
            raise RuntimeError("the relay on loopback did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._in_loop(self._stop.set)
        self._thread.join()

    def cut(self) -> None:
        """End every connection now."""
        self._in_loop(self._cut)

    def freeze(self) -> None:
        """Hold everything back; `heal` lets it arrive."""
        self._in_loop(self._flowing.clear)

    def refuse(self) -> None:
        """End every connection that begins, and those that are there."""
        self._in_loop(self._close)

    def heal(self) -> None:
        self._in_loop(self._open)

    def _in_loop(self, act: Callable[[], None]) -> None:
        done = threading.Event()

        def perform() -> None:
            act()
            done.set()

        self._loop.call_soon_threadsafe(perform)
        done.wait(PATIENCE_S)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._flowing, self._is_open = asyncio.Event(), True
        self._flowing.set()
        listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = int(listener.sockets[0].getsockname()[1])
        self._is_ready.set()
        await self._stop.wait()
        listener.close()
        self._cut()
        await asyncio.gather(*self._lines, return_exceptions=True)

    def _cut(self) -> None:
        for line in self._lines:
            line.cancel()

    def _close(self) -> None:
        self._is_open = False
        self._cut()

    def _open(self) -> None:
        self._is_open = True
        self._flowing.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or not self._is_open:
            return writer.transport.abort()
        self._lines.add(task)
        task.add_done_callback(self._lines.discard)
        self.accepted += 1
        # asyncio's own server complains of a connection whose task was cancelled.
        with suppress(asyncio.CancelledError):
            await self._lead_on(reader, writer)

    async def _lead_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far: asyncio.StreamWriter | None = None
        try:
            far_reader, far = await asyncio.open_connection(self._host, self._port)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_on(reader, far))
                both.create_task(self._pass_on(far_reader, writer))
        except* (OSError, EOFError):
            pass
        finally:
            for end in (writer, far):
                if end is not None:
                    end.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK_BYTES):
            await self._flowing.wait()
            writer.write(chunk)
            await writer.drain()
        raise EOFError
