"""`penstock mcp`: one client over stdin and stdout, for as long as it holds them open."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import anyio
from mcp.server.stdio import stdio_server

from penstock.app.calls import InThreads, ProjectCalls
from penstock.app.idempotency import IdempotencyKeys
from penstock.app.noun import who
from penstock.app.verbs.roles import Identity, Role
from penstock.mcp.server import FrontEnd

if TYPE_CHECKING:
    from penstock.app import Project

THREADS = 4
STDIN, STDOUT, STDERR = 0, 1, 2
# A longer line is skipped: no request is that long.
LONGEST_LINE = 1_000_000


def run_stdio(project: Project, allowed: Role) -> None:
    """Serve until the client closes stdin. Stdout carries the protocol and nothing else."""
    # A thread waits for stdin and can't be interrupted; whatever is under way is all or nothing.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    quiet_sdk()
    with _own_streams() as (incoming, outgoing):
        try:
            asyncio.run(_serve(project, allowed, incoming, outgoing))
        except* (BrokenPipeError, ConnectionResetError):
            sys.stderr.write("the client is gone\n")


async def _serve(
    project: Project, allowed: Role, incoming: BinaryIO, outgoing: io.TextIOWrapper
) -> None:
    person = Identity(who(None), allowed)
    calls = InThreads("mcp", THREADS)
    front = FrontEnd(project, ProjectCalls(project, calls), IdempotencyKeys(), lambda _: person)
    server = front.server()
    lines: Any = _Lines(incoming)
    try:
        async with stdio_server(lines, anyio.wrap_file(outgoing)) as (requests, answers):
            await server.run(requests, answers, server.create_initialization_options())
    finally:
        # An act that was begun is finished, although nobody waits for its answer.
        calls.close()


@contextmanager
def _own_streams() -> Iterator[tuple[BinaryIO, io.TextIOWrapper]]:
    """The client's end of stdin and stdout, which nothing else of this process can reach any more.

    What a pipeline prints goes to stderr, and what reads stdin finds its end.
    """
    incoming = os.fdopen(os.dup(STDIN), "rb")
    outgoing = io.TextIOWrapper(os.fdopen(os.dup(STDOUT), "wb"), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STDIN)
    os.close(nothing)
    os.dup2(STDERR, STDOUT)
    try:
        yield incoming, outgoing
    finally:
        # A client that is gone reads no more.
        with suppress(OSError):
            outgoing.close()


class _Lines:
    """What the client sends, line by line; each of bounded length."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await anyio.to_thread.run_sync(self._next):
            yield line.decode("utf-8", "replace")

    def _next(self) -> bytes:
        line = self._stream.readline(LONGEST_LINE)
        if len(line) < LONGEST_LINE or line.endswith(b"\n"):
            return line
        while rest := self._stream.readline(LONGEST_LINE):
            if rest.endswith(b"\n"):
                break
        return b"too long\n"


def quiet_sdk() -> None:
    """What the SDK logs may repeat what it was sent; only that something went wrong is told."""
    logger = logging.getLogger("mcp")
    logger.propagate = False
    logger.handlers = [_Telling()]


class _Telling(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0] if record.exc_info else None
        about = "" if kind is None else f": {kind.__name__}"
        sys.stderr.write(f"a message could not be handled{about}\n")
