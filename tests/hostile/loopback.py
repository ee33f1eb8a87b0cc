"""A server on loopback that answers exactly what a test tells it to, however wrong that is."""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import ParamSpec, Self

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

P = ParamSpec("P")
Stream = Callable[[], AsyncIterator[bytes]]


def in_loop(test: Callable[P, Coroutine[object, object, None]]) -> Callable[P, None]:
    """Let an async function be a test."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def answer(body: bytes = b"", status: int = 200, **headers: str) -> bytes:
    """A well-formed answer; `content_type="text/html"` becomes the header Content-Type."""
    fields = {"content_length": str(len(body))} | headers
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([f"HTTP/1.1 {status} Whatever", *lines, "\r\n"]).encode() + body


@dataclass
class Seen:
    """A request as it arrived."""

    line: str
    headers: dict[str, str]

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]


@dataclass
class Loopback:
    """Serves `answers` by path (whole bytes, or a stream of them) and remembers who came."""

    answers: dict[str, bytes | Stream] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    connections: int = 0
    seen: list[Seen] = field(default_factory=list)
    port: int = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self._tasks: set[asyncio.Task[None]] = set()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._serve_one(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
        fields = (line.partition(": ") for line in head[1:])
        self.seen.append(Seen(head[0], {name.lower(): value for name, _, value in fields}))
        reply = self.answers.get(self.seen[-1].path, answer(b"nothing here", 404))
        if isinstance(reply, bytes):
            writer.write(reply)
            await writer.drain()
            return True
        async for piece in reply():
            writer.write(piece)
            await writer.drain()
        return False


@dataclass
class Names(AbstractResolver):
    """A resolver that answers from a list per lookup, the last one for ever; counts lookups."""

    answers: list[list[str]]
    lookups: list[str] = field(default_factory=list)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        addresses = self.answers[min(len(self.lookups), len(self.answers) - 1)]
        self.lookups.append(host)
        return [_result(host, port, address) for address in addresses]

    async def close(self) -> None:
        pass


def _result(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(
        hostname=host, host=address, port=port, family=family, proto=0, flags=flags
    )


@dataclass
class Doors:
    """Opens no socket: notes which address one was wanted for, and refuses."""

    wanted: list[str] = field(default_factory=list)

    def __call__(self, info: aiohttp.AddrInfoType) -> socket.socket:
        self.wanted.append(str(info[4][0]))
        raise ConnectionRefusedError(111, "closed for the test")
