"""A browser as its worker sees it: a process that can be killed, and the conversation with it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from fnmatch import fnmatchcase
from functools import partial
from typing import Protocol, TypeAlias

import msgspec

from penstock.http.browser.messages import (
    Answer,
    Asked,
    Cancel,
    Drawn,
    Failed,
    Frames,
    FromBrowser,
    Go,
    Hold,
    Ready,
    Render,
    ToBrowser,
    Unfit,
    framed,
)
from penstock.http.browser.options import RenderOptions
from penstock.http.browser.process_tree import kill, marked

END_S = 5.0
READ_BYTES = 262_144
# What programs need of the environment. Nothing else of the worker's is for a browser to see.
NEEDED = (
    *("PATH", "LANG", "LANGUAGE", "LC_*", "TZ", "PYTHON*", "VIRTUAL_ENV", "LD_LIBRARY_PATH"),
    *("FONTCONFIG_*", "XDG_DATA_DIRS", "PLAYWRIGHT_*"),
)


Pause: TypeAlias = Callable[[], AbstractContextManager[None]]


class BrowserEnded(Exception):
    """The browser's process is gone; what it drew is lost."""


class PageFailed(Exception):
    """A page could not be drawn. `picture` is what was to be seen of it."""

    def __init__(self, reason: str, is_permanent: bool, picture: bytes = b"") -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_permanent = is_permanent
        self.picture = picture


class Answering(Protocol):
    """Who answers the requests of one page. `pause` is entered while one waits for its turn."""

    async def answer(self, asked: Asked, pause: Pause) -> Answer: ...

    def start_over(self) -> None: ...


class Browser:
    """One process with a chromium of its own. It may be talked to from one event loop after the other."""

    def __init__(
        self, options: RenderOptions, hold: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._hold = hold
        self._folder = tempfile.mkdtemp(prefix="penstock-browser-")
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        lifeline, self._lifeline = os.pipe()
        with theirs:
            self._process = _spawn(theirs.fileno(), lifeline, self._folder, options)
        os.close(lifeline)
        self._burying: threading.Thread | None = None
        self._line: _Line | None = None
        self._unsent = bytearray()
        self._frames = Frames()
        self._ready: Ready | Unfit | None = None
        self._news: dict[int, asyncio.Queue[FromBrowser | None]] = {}
        self.has_ended = False
        self.is_worn = False
        self.drawn = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def drawing(self) -> int:
        return len(self._news)

    async def draw(self, wanted: Render, answering: Answering) -> Drawn:
        self._attach()
        news = self._news[wanted.id] = asyncio.Queue()
        is_over = False
        try:
            await self._until_ready(news)
            self._send(wanted)
            drawn = await self._converse(news, answering)
            is_over = True
            return drawn
        except (PageFailed, BrowserEnded):
            is_over = True
            raise
        finally:
            self._news.pop(wanted.id, None)
            if not is_over:
                self._send(Cancel(wanted.id))

    async def _until_ready(self, news: asyncio.Queue[FromBrowser | None]) -> None:
        if self.has_ended:
            raise BrowserEnded
        while self._ready is None:
            with self._hold():
                if await news.get() is None:
                    raise BrowserEnded
        if isinstance(self._ready, Unfit):
            self.has_ended = True
            raise PageFailed(self._ready.reason, self._ready.is_permanent)

    async def _converse(
        self, news: asyncio.Queue[FromBrowser | None], answering: Answering
    ) -> Drawn:
        """Answer what the page asks for, until it is drawn."""
        answers: set[asyncio.Task[None]] = set()
        try:
            while True:
                match await self._next(news, answers):
                    case Asked() as asked:
                        answers.add(asyncio.ensure_future(self._answer(asked, answering)))
                    case Drawn() as drawn:
                        self.is_worn |= drawn.is_worn
                        return drawn
                    case Failed() as failed:
                        self.is_worn |= failed.is_worn
                        raise PageFailed(failed.reason, failed.is_permanent, failed.screenshot)
                    case None:
                        raise BrowserEnded
        finally:
            for task in answers:
                task.cancel()

    async def _next(
        self, news: asyncio.Queue[FromBrowser | None], answers: set[asyncio.Task[None]]
    ) -> FromBrowser | None:
        """What the browser says next. An answer that fails, fails the page."""
        getting = asyncio.ensure_future(news.get())
        try:
            while not getting.done():
                if not answers:
                    with self._hold():
                        await asyncio.wait({getting})
                    continue
                await asyncio.wait({getting, *answers}, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in answers if task.done()]:
                    answers.discard(task)
                    task.result()
            return getting.result()
        finally:
            getting.cancel()

    async def _answer(self, asked: Asked, answering: Answering) -> None:
        answer = await answering.answer(asked, partial(self._paused, asked.render))
        self._send(msgspec.structs.replace(answer, id=asked.id))

    @contextmanager
    def _paused(self, render: int) -> Iterator[None]:
        self._send(Hold(render))
        try:
            yield
        finally:
            self._send(Go(render))

    def _attach(self) -> None:
        """Listen on the loop that runs now. What was drawn for one that is gone is given up."""
        loop = asyncio.get_running_loop()
        if self.has_ended or (self._line is not None and self._line.loop is loop):
            return
        if self._line is not None:
            self._line.leave()
        self._line = _Line(loop, self._socket, self._unsent, self._hear)
        left, self._news = self._news, {}
        for render in left:
            self._send(Cancel(render))

    def _hear(self, data: bytes) -> None:
        if not data:
            self._lose()
            return
        for each in self._frames.add(data):
            self._take(msgspec.msgpack.decode(each, type=FromBrowser))

    def _take(self, message: FromBrowser) -> None:
        match message:
            case Ready() | Unfit():
                self._ready = message
                for news in self._news.values():
                    news.put_nowait(message)
            case Asked(render=render) | Drawn(render=render) | Failed(render=render):
                if render in self._news:
                    self._news[render].put_nowait(message)

    def _lose(self) -> None:
        self.has_ended = True
        for news in self._news.values():
            news.put_nowait(None)

    def _send(self, message: ToBrowser) -> None:
        if self._line is not None and not self.has_ended:
            self._line.send(framed(message))

    def kill(self) -> None:
        """End it with everything that it has started; who wants to see that it is gone calls `close`."""
        self.has_ended = True
        if self._line is not None:
            self._line.leave()
            self._line = None
        if self._burying is None:
            os.close(self._lifeline)
            self._socket.close()
            self._burying = threading.Thread(target=_bury, args=(self._process, self._folder))
            self._burying.start()

    def close(self) -> None:
        """Kill it, and wait until nothing is left of it."""
        self.kill()
        if self._burying is not None:
            self._burying.join()


class _Line:
    """The socket on one event loop. What could not be sent yet is in `unsent`, which outlives the line."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        line: socket.socket,
        unsent: bytearray,
        hear: Callable[[bytes], None],
    ) -> None:
        self.loop = loop
        self._socket = line
        self._unsent = unsent
        self._hear = hear
        loop.add_reader(line, self._read)
        self.send(b"")

    def send(self, data: bytes) -> None:
        self._unsent += data
        self._write()

    def leave(self) -> None:
        if not self.loop.is_closed():
            self.loop.remove_reader(self._socket)
            self.loop.remove_writer(self._socket)

    def _read(self) -> None:
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.leave()
        self._hear(data)

    def _write(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent[:READ_BYTES])]
        except BlockingIOError:
            self.loop.add_writer(self._socket, self._write)
            return
        except OSError:
            self._unsent.clear()  # the end of it is heard by its reader
        self.loop.remove_writer(self._socket)


def _bury(process: subprocess.Popen[bytes], folder: str) -> None:
    """It ends by itself when its lifeline is closed; if it does not, and for what it left, there is force."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    kill(marked(folder))
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)


def environment(ours: Mapping[str, str], folder: str) -> dict[str, str]:
    """What the browser gets to see of the environment: not what secrets are taken from."""
    passed = {
        name: value
        for name, value in ours.items()
        if any(fnmatchcase(name, pattern) for pattern in NEEDED)
    }
    return {**passed, "HOME": folder, "TMPDIR": folder}


def _spawn(
    channel: int, lifeline: int, folder: str, options: RenderOptions
) -> subprocess.Popen[bytes]:
    """In a session of its own: Ctrl-C is for the supervisor."""
    about = [str(channel), str(lifeline), folder, str(options.memory), options.browser]
    return subprocess.Popen(  # noqa: S603  our own interpreter and module
        [sys.executable, "-P", "-m", "penstock.http.browser.process", *about],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(channel, lifeline),
        start_new_session=True,
        env=environment(os.environ, folder),
    )
