"""A network that fails on command, between a client and its Postgres (or PgBouncer).

    with Proxy(postgres.port) as proxy:
        url = proxy.through(database)

        proxy.delay(to_server_s=0.05, to_client_s=0.05)    # a slow link
        proxy.freeze(); proxy.thaw()                       # a partition that heals: all arrives, late
        proxy.black_hole()                                 # one that does not: bytes vanish, nobody is told
        proxy.refuse(); proxy.accept()                     # nobody listens
        proxy.cut()                                        # every connection ends now
        proxy.drop_notifications()
        lost = proxy.fail(Fault.CUT_AFTER, at="COMMIT")    # committed, and the client never hears of it
        ...
        lost.wait()                                        # until it has happened
        proxy.heal()

It runs in a thread of its own and reads the protocol, so a fault strikes at a statement, not at a time.
"""

from __future__ import annotations

import asyncio
import random
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Self, TypeAlias

from tests.postgres.ports import at_port, free_port
from tests.postgres.wire import (
    ANSWERED_WITH_READY,
    CANCEL,
    EXECUTE,
    NOTIFICATION,
    READY,
    Message,
    Splitter,
    Statements,
    code_of,
    read_start_up,
)

CHUNK_BYTES = 1 << 16
CHUNKS_ON_THE_WAY = 64
PATIENCE_S = 30.0
LOOK_S = 0.01


Due: TypeAlias = "tuple[float, list[Message] | None]"  # None: the sender has hung up
Delay: TypeAlias = Callable[[], float]
Forward: TypeAlias = "Callable[[list[Message]], Awaitable[None]]"


class Fault(Enum):
    """What happens to a statement. Cut: the connection ends. Hang: it stays, and is silent for ever."""

    CUT_BEFORE = "the server never sees it"
    CUT_AFTER = "the server has run it; its answer is lost"
    HANG_BEFORE = "the server never sees it, and the client waits"
    HANG_AFTER = "the server has run it, and the client waits"

    @property
    def is_before(self) -> bool:
        return self in {Fault.CUT_BEFORE, Fault.HANG_BEFORE}

    @property
    def cuts(self) -> bool:
        return self in {Fault.CUT_BEFORE, Fault.CUT_AFTER}


@dataclass
class Trigger:
    """A fault that waits for its statement. `happened` counts how often it came."""

    fault: Fault
    pattern: re.Pattern[str]
    strikes: Callable[[int], bool]
    seen: int = 0
    happened: int = 0
    _happened: threading.Event = field(default_factory=threading.Event, repr=False)

    def meets(self, statement: str) -> bool:
        if not self.pattern.search(statement):
            return False
        self.seen += 1
        return self.strikes(self.seen)

    def note(self) -> None:
        self.happened += 1
        self._happened.set()

    def wait(self, patience_s: float = PATIENCE_S) -> None:
        """Until it has happened once."""
        assert self._happened.wait(patience_s), (
            f"in {patience_s:g} s no {self.pattern.pattern!r} failed"
        )


class Proxy:
    """Listens on a port of its own on loopback; every connection leads on to `target_port`."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.port = free_port()
        self.accepted = 0
        self.statements = 0
        self.notifications_dropped = 0
        self.links: set[Link] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._flowing = asyncio.Event()
        self._listener: socket.socket | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._forget_faults()

    def __enter__(self) -> Self:
        self._thread.start()
        self._flowing_is(True)
        self.accept()
        return self

    def __exit__(self, *_: object) -> None:
        self._in_loop(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def through(self, url: str) -> str:
        """The same database by way of this proxy."""
        return at_port(url, self.port)

    # Faults.

    def delay(self, *, to_server_s: float = 0.0, to_client_s: float = 0.0) -> None:
        """Let everything arrive later from now on; what is sent meanwhile travels at the same time."""
        self.to_server_s, self.to_client_s = to_server_s, to_client_s

    def freeze(self) -> None:
        """Hold back everything, in both directions, and forget nothing: `thaw` lets it arrive."""
        self._flowing_is(False)

    def thaw(self) -> None:
        self._flowing_is(True)

    def black_hole(self, *, existing: bool = True, new: bool = True) -> None:
        """Take all bytes and pass on none. The other side is not told when one hangs up, either.

        What is in the hole stays there: `heal` is for new connections only.
        """
        self.swallows_new = new
        if existing:
            self._in_loop(self._silence)

    def refuse(self) -> None:
        """Let nobody in: the port is closed. Who is in stays."""
        self._in_loop(self._close_port)

    def accept(self) -> None:
        self._in_loop(self._open_port)

    def cut(self) -> None:
        """End every connection now, on both sides."""
        self._in_loop(self._cut)

    def drop_notifications(self, dropping: bool = True) -> None:
        """Swallow what LISTEN would have heard."""
        self.drops_notifications = dropping

    def fail(self, fault: Fault, at: str = "", nth: int = 1) -> Trigger:
        """Fail the n-th statement from now on that the regular expression `at` is found in."""
        return self._add(fault, at, lambda seen: seen == nth)

    def fail_when(self, fault: Fault, strikes: Callable[[int], bool], at: str = "") -> Trigger:
        """Fail each such statement that is chosen by its number, from 1."""
        return self._add(fault, at, strikes)

    def fail_at_random(self, fault: Fault, probability: float, seed: int, at: str = "") -> Trigger:
        """Fail one of each so many such statements. The same seed strikes the same ones of them.

        Chance decides which one, not how many: a short run would be spared by it now and then.
        """
        of = round(1 / probability)

        def strikes(number: int) -> bool:
            return number % of == random.Random(f"{seed} {number // of}").randrange(of)

        return self._add(fault, at, strikes)

    def heal(self) -> None:
        """Forget every fault: from now on connections are let in, and everything is passed on."""
        self._forget_faults()
        self.thaw()
        self.accept()

    def _add(self, fault: Fault, at: str, strikes: Callable[[int], bool]) -> Trigger:
        trigger = Trigger(fault, re.compile(at, re.IGNORECASE), strikes)
        self.triggers.append(trigger)
        return trigger

    def _forget_faults(self) -> None:
        self.delay()
        self.swallows_new = False
        self.drops_notifications = False
        self.triggers: list[Trigger] = []

    # Inside the thread.

    def _in_loop(self, act: Callable[[], Awaitable[None]]) -> None:
        async def run() -> None:
            await act()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(PATIENCE_S)

    def _flowing_is(self, flowing: bool) -> None:
        async def change() -> None:
            (self._flowing.set if flowing else self._flowing.clear)()

        self._in_loop(change)

    async def flowing(self) -> None:
        await self._flowing.wait()

    async def _open_port(self) -> None:
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            self._listener.setblocking(False)
            self._loop.add_reader(self._listener, self._let_in, self._listener)

    async def _close_port(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    def _let_in(self, listener: socket.socket) -> None:
        # Not asyncio's own server: closed at the wrong moment, it forgets a connection and leaves it open.
        with suppress(BlockingIOError):
            client, _ = listener.accept()
            client.setblocking(False)
            self.accepted += 1
            serving = self._loop.create_task(self._serve(client))
            self._serving.add(serving)
            serving.add_done_callback(self._serving.discard)

    async def _silence(self) -> None:
        for link in self.links:
            link.is_silent = True

    async def _cut(self) -> None:
        links = list(self.links)
        for link in links:
            link.cut()
        await asyncio.gather(*(link.over.wait() for link in links))

    async def _serve(self, client: socket.socket) -> None:
        link = Link(self, *await asyncio.open_connection(sock=client))
        self.links.add(link)
        try:
            await link.run()
        finally:
            self.links.discard(link)
            link.over.set()

    async def _end(self) -> None:
        """Close the port and every connection, those as well that are on their way in at this moment."""
        await self._close_port()
        while self._serving:
            for link in self.links:
                link.cut()
            await asyncio.wait(self._serving, timeout=LOOK_S)

    def trigger_for(self, statement: str) -> Trigger | None:
        self.statements += 1
        met = [trigger for trigger in self.triggers if trigger.meets(statement)]
        return met[0] if met else None


@dataclass(eq=False)
class Link:
    """One client and its connection to the server.

    To lose the answer to a statement is to swallow what comes until the server says that it is ready
    again: only then it is certain that the statement was run. `asked` and `ready` number those moments.
    """

    proxy: Proxy
    client_reader: asyncio.StreamReader
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter | None = None
    is_silent: bool = False
    asked: int = 1  # once unasked, after the start-up
    ready: int = 0
    losing: tuple[Trigger, int] | None = None
    statements: Statements = field(default_factory=Statements)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    _running: asyncio.Task[None] | None = None

    async def run(self) -> None:
        self._running = asyncio.current_task()
        self.is_silent = self.proxy.swallows_new
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await (self._swallow(self.client_reader) if self.is_silent else self._lead_on())
        for writer in self._writers():
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def cut(self) -> None:
        for writer in self._writers():
            writer.transport.abort()
        if self._running:
            self._running.cancel()

    def _writers(self) -> list[asyncio.StreamWriter]:
        return [writer for writer in (self.client, self.server) if writer is not None]

    async def _swallow(self, reader: asyncio.StreamReader) -> None:
        while await reader.read(CHUNK_BYTES):
            pass
        await asyncio.Event().wait()

    async def _lead_on(self) -> None:
        start_up = await read_start_up(self.client_reader, self.client)
        await self.proxy.flowing()
        server_reader, self.server = await asyncio.open_connection(
            "127.0.0.1", self.proxy.target_port
        )
        self.server.write(start_up)
        if code_of(start_up) != CANCEL:
            await self._until_either_ends(
                self._flow(self.client_reader, self._to_server, lambda: self.proxy.to_server_s),
                self._flow(server_reader, self._to_client, lambda: self.proxy.to_client_s),
            )

    async def _until_either_ends(self, *flows: Coroutine[None, None, None]) -> None:
        tasks = [asyncio.create_task(flow) for flow in flows]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _flow(self, reader: asyncio.StreamReader, forward: Forward, delay_s: Delay) -> None:
        """One direction: what is read now is passed on when it is due, and while things flow."""
        on_the_way: asyncio.Queue[Due] = asyncio.Queue(CHUNKS_ON_THE_WAY)
        reading = asyncio.create_task(self._read(reader, on_the_way, delay_s))
        try:
            while True:
                due_at, messages = await on_the_way.get()
                await asyncio.sleep(max(0.0, due_at - asyncio.get_running_loop().time()))
                await self.proxy.flowing()
                if messages is None:
                    break
                await forward(messages)
        finally:
            reading.cancel()
        if self.is_silent:
            await asyncio.Event().wait()

    async def _read(
        self, reader: asyncio.StreamReader, on_the_way: asyncio.Queue[Due], delay_s: Delay
    ) -> None:
        splitter, now = Splitter(), asyncio.get_running_loop().time
        with suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                if messages := splitter.feed(chunk):
                    await on_the_way.put((now() + delay_s(), messages))
        await on_the_way.put((now() + delay_s(), None))

    async def _to_server(self, messages: list[Message]) -> None:
        assert self.server is not None
        passing: list[Message] = []
        for message in messages:
            struck_by = self._struck_by(message)
            if struck_by and struck_by.fault.is_before:
                await self._pass_on(self.server, passing)
                return self._suffer(struck_by)
            self.asked += message.kind in ANSWERED_WITH_READY
            if struck_by:
                self.losing = struck_by, self.asked + (message.kind == EXECUTE)
            passing.append(message)
        await self._pass_on(self.server, passing)

    def _struck_by(self, message: Message) -> Trigger | None:
        statement = self.statements.run_by(message)
        return None if statement is None or self.is_silent else self.proxy.trigger_for(statement)

    async def _to_client(self, messages: list[Message]) -> None:
        passing: list[Message] = []
        for message in messages:
            is_lost = self.losing is not None and self.ready >= self.losing[1] - 1
            self.ready += message.kind == READY
            if self.losing and self.ready >= self.losing[1]:
                await self._pass_on(self.client, passing)
                return self._suffer(self.losing[0])
            if not is_lost and not self._drops(message):
                passing.append(message)
        await self._pass_on(self.client, passing)

    def _drops(self, message: Message) -> bool:
        drops = self.proxy.drops_notifications and message.kind == NOTIFICATION
        self.proxy.notifications_dropped += drops
        return drops

    async def _pass_on(self, writer: asyncio.StreamWriter, messages: list[Message]) -> None:
        if messages and not self.is_silent:
            writer.write(b"".join(message.whole for message in messages))
            await writer.drain()

    def _suffer(self, trigger: Trigger) -> None:
        if trigger.fault.cuts:
            self.cut()
        self.is_silent = True
        trigger.note()
