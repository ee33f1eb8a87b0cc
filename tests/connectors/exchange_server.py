"""The exchange as a server on the loopback: history over HTTP, and a stream over a websocket with its faults.

Whatever goes wrong is drawn from the seed: events that do not come, come twice or too early, and connections
that end. Nothing is ever resent by itself, unless the server `resumes`.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web

from tests.connectors.exchange import Exchange, Row

FRAME = 5


@dataclass
class Faults:
    """How likely each fault is, for one event or one frame."""

    lost: float = 0.0
    # Sequences of every symbol that do not come.
    losing: frozenset[int] = frozenset()
    twice: float = 0.0
    early: float = 0.0
    cut: float = 0.0
    # Events that nobody hears after a cut.
    outage: int = 0
    resumes: bool = False
    # What is sent to everybody instead of events.
    error: str = ""
    # After so many frames nothing more comes over a connection, not even a heartbeat.
    silent_after: int = 0


@dataclass
class Served:
    """A running server, and what a test may ask it."""

    exchange: Exchange
    faults: Faults
    port: int = 0
    # How far the stream has come, for each symbol.
    told: dict[str, int] = field(default_factory=dict)
    connections: int = 0
    # How many events of each symbol it tells for now.
    limit: int | None = None
    tokens: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def stream_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/stream"

    @property
    def is_told(self) -> bool:
        """Whether the stream has come to its end."""
        return all(
            self.told.get(name, 0) >= len(rows) for name, rows in self.exchange.ticks.items()
        )


@contextmanager
def served(exchange: Exchange, faults: Faults | None = None) -> Iterator[Served]:
    """The exchange in a thread of this process: it outlives every Penstock that is killed."""
    found = Served(exchange, faults or Faults())
    loop = asyncio.new_event_loop()
    is_up, ends = threading.Event(), asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(_serve(found, is_up, ends),))
    thread.start()
    is_up.wait()
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(ends.set)
        thread.join()
        loop.close()


async def _serve(found: Served, is_up: threading.Event, ends: asyncio.Event) -> None:
    rng = random.Random(found.exchange.seed)
    application = web.Application()

    async def history(request: web.Request) -> web.Response:
        found.tokens.append(request.headers.get("Authorization", ""))
        said = found.exchange.get(f"{found.url}{request.raw_path}")
        return web.Response(status=said.status, body=said.body, headers=said.headers)

    async def stream(request: web.Request) -> web.WebSocketResponse:
        found.tokens.append(request.headers.get("Authorization", ""))
        found.connections += 1
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await _tell(found, socket, rng)
        return socket

    application.router.add_get("/stream", stream)
    application.router.add_get("/{path:.*}", history)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    found.port = runner.addresses[0][1]
    is_up.set()
    await ends.wait()
    await runner.cleanup()


async def _tell(found: Served, socket: web.WebSocketResponse, rng: random.Random) -> None:
    """One connection: frames of events, until it is cut or the other side goes."""
    asked = await socket.receive()
    if asked.type is not WSMsgType.TEXT:
        return
    wanted = json.loads(asked.data)
    faults = found.faults
    if faults.error:
        await socket.send_json({"error": faults.error})
        return
    if faults.resumes:
        found.told = {name: wanted["after"].get(name, 0) for name in wanted["subscribe"]}
    early: list[Row] = []
    frames = 0
    while not socket.closed:
        rows = _next_rows(found, wanted["subscribe"], rng, early)
        frames += 1
        try:
            if faults.silent_after and frames > faults.silent_after:
                if (await socket.receive()).type is not WSMsgType.TEXT:
                    return
                continue
            await socket.send_json({"rows": rows} if rows else {"heartbeat": frames})
        except (ConnectionError, RuntimeError):
            return
        if rows and rng.random() < faults.cut:
            for name in wanted["subscribe"]:
                left = len(found.exchange.ticks[name]) - found.told.get(name, 0) - 1
                found.told[name] = found.told.get(name, 0) + max(0, min(faults.outage, left))
            await socket.close()
            return
        await asyncio.sleep(0.001 if rows else 0.02)


def _next_rows(
    found: Served, symbols: list[str], rng: random.Random, early: list[Row]
) -> list[Row]:
    """The next events, with their faults. The last event of a symbol always comes, and comes last."""
    faults = found.faults
    rows: list[Row] = []
    for name in symbols:
        ledger = found.exchange.ticks[name]
        limit = len(ledger) if found.limit is None else min(found.limit, len(ledger))
        for _ in range(FRAME):
            at = found.told.get(name, 0)
            if at >= limit:
                break
            found.told[name] = at + 1
            is_last = at + 1 == len(ledger)
            if at + 1 in faults.losing or (rng.random() < faults.lost and not is_last):
                continue
            if rng.random() < faults.early and not is_last:
                early.append(ledger[at])
                continue
            rows.append(ledger[at])
            if rng.random() < faults.twice:
                rows.append(ledger[at])
    if early and (rng.random() < 0.5 or not rows):
        rows += early
        early.clear()
    return rows
