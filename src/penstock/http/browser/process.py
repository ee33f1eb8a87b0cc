"""The process of a browser: `python -m penstock.http.browser.process CHANNEL LIFELINE FOLDER MEMORY PROGRAM`.

It has Playwright and chromium below it, and talks to its worker alone. It ends when the worker closes the
lifeline or dies, and by itself when nothing was drawn for a while.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from penstock.http.browser.chromium import MISSING, arguments, find_chromium, has_sandbox
from penstock.http.browser.guard import Guard
from penstock.http.browser.messages import (
    Answer,
    Cancel,
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
from penstock.http.browser.tabs import Tabs

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

IDLE_S = 60.0
READ_BYTES = 262_144
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


class Channel:
    """The line to the worker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = Frames()

    def send(self, message: FromBrowser) -> None:
        with suppress(ConnectionError, RuntimeError):
            self._writer.write(framed(message))

    async def drain(self) -> None:
        with suppress(ConnectionError):
            await self._writer.drain()

    async def receive(self) -> list[ToBrowser] | None:
        data = await self._reader.read(READ_BYTES)
        if not data:
            return None
        return [msgspec.msgpack.decode(each, type=ToBrowser) for each in self._frames.add(data)]


async def serve(channel: Channel, tabs: Tabs) -> None:
    """Until the worker has nothing more to say, or nothing was drawn for a while."""
    while True:
        try:
            async with asyncio.timeout(IDLE_S):
                messages = await channel.receive()
        except TimeoutError:
            if tabs.drawing:
                continue
            return
        if messages is None:
            return
        for message in messages:
            obey(tabs, message)


def obey(tabs: Tabs, message: ToBrowser) -> None:
    match message:
        case Render():
            tabs.render(message)
        case Answer():
            tabs.answer(message)
        case Hold(render):
            tabs.hold(render)
        case Go(render):
            tabs.go(render)
        case Cancel(render):
            tabs.cancel(render)


async def main(descriptor: int, guard: Guard, chromium: str, tabs: Tabs) -> None:
    from playwright.async_api import async_playwright

    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor))
    channel = Channel(reader, writer)
    tabs.send = channel.send
    tabs.has_just_killed = lambda: guard.has_just_killed
    async with async_playwright() as playwright:
        started = await launch(playwright, chromium)
        if isinstance(started, Unfit):
            channel.send(started)
            await channel.drain()
            return
        # Without it nothing can be drawn: who waits hears of it by our end.
        started.on("disconnected", lambda _: guard.end(1))
        tabs.browser = started
        channel.send(Ready(started.version))
        await serve(channel, tabs)


async def launch(playwright: Playwright, named: str) -> Browser | Unfit:
    from playwright.async_api import Error

    path = find_chromium(named, [playwright.chromium.executable_path])
    if path is None:
        return Unfit(f"there is no {named}: {MISSING}" if named else MISSING, is_permanent=True)
    try:
        return await playwright.chromium.launch(
            executable_path=path,
            args=arguments(),
            chromium_sandbox=has_sandbox(),
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
    except Error as error:
        line = next((each for each in error.message.splitlines() if each.strip()), "")
        return Unfit(f"{path} does not start: {line.strip()[:300]}", is_permanent=False)


def run(arguments: list[str]) -> None:
    descriptor, lifeline, folder, memory, chromium = arguments
    _keep_below()
    tabs = Tabs()
    guard = Guard(int(lifeline), folder, int(memory), lambda: tabs.drawing)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: guard.end(0))
    guard.start()
    try:
        asyncio.run(main(int(descriptor), guard, chromium, tabs))
    finally:
        guard.end(0)


def _keep_below() -> None:
    """Processes that lose their parent come to us, so that we can end them; and we end with the worker."""
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    os.chdir("/")


if __name__ == "__main__":
    run(sys.argv[1:])
