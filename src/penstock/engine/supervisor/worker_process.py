"""The process of a worker on the event loop of its supervisor: what it says, and how it ends."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from contextlib import suppress


class WorkerProcess:
    """A process that runs already, whoever has started it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._pipe: asyncio.ReadTransport | None = None
        self.returncode: int | None = None
        # Not the loop's own threads: one that waits for a process would keep the loop from being closed.
        threading.Thread(target=self._await_end, name=f"end of {self.pid}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def said(self) -> asyncio.StreamReader:
        """What it prints."""
        reader = asyncio.StreamReader()
        if self._process.stdout is None:
            reader.feed_eof()
            return reader
        protocol = asyncio.StreamReaderProtocol(reader)
        pipe = self._process.stdout
        self._pipe, _ = await self._loop.connect_read_pipe(lambda: protocol, pipe)
        return reader

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """Listen no more: a process that a step has started may keep the pipe open."""
        if self._pipe is not None:
            self._pipe.close()

    async def wait(self) -> None:
        await self._ended.wait()

    def _await_end(self) -> None:
        code = self._process.wait()
        with suppress(RuntimeError):  # the loop is closed: nobody asks any more
            self._loop.call_soon_threadsafe(self._note_end, code)

    def _note_end(self, code: int) -> None:
        self.returncode = code
        self._ended.set()
