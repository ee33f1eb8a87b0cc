"""The child process: `python -m penstock.engine.worker.child FD ROOT`.

Performs the attempts its worker hands it, one at a time, with an event loop and threads of its own.
It ends with its worker: when the channel closes, and on Linux by the kernel's hand.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import os
import signal
import socket
import sys
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.clock import SystemClock
from penstock.connectors.graphs import connected
from penstock.engine.worker.child_protocol import (
    Answer,
    Ask,
    Begin,
    Channel,
    Charge,
    Ready,
    Refusal,
    end_of,
    error_from,
    pack,
)
from penstock.engine.worker.perform import Performer
from penstock.engine.worker.performance import Work
from penstock.engine.worker.threads import Threads
from penstock.errors import PipelineError
from penstock.http.response import Response
from penstock.jobs.effects import Effects
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Outcome
from penstock.pipeline.attempt import BeforeRequest
from penstock.pipeline.error_outcome import outcome_of
from penstock.pipeline.graph import Graph
from penstock.pipeline.loader import pipeline_of, put_on_path
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.registry import Registry
from penstock.pipeline.version import version_of, with_params

if TYPE_CHECKING:
    from penstock.http.door import Door

PR_SET_PDEATHSIG = 1


class Proxy:
    """The worker's services, asked for through the channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._asked = 0
        self._waiting: dict[int, asyncio.Future[bytes]] = {}

    async def fetch(self, job: Claimed, url: str, **options: Any) -> Response:
        return msgspec.msgpack.decode(await self._ask("fetch", (url, options)), type=Response)

    def door(self, job: Claimed, host: str, port: int, *, tls: bool, begin: BeforeRequest) -> Door:
        raise PipelineError(
            "a step in a child process has no ctx.door: connections stay in the worker",
            "leave isolation= out of the step",
        )

    async def flush(self, job: Claimed, effects: Effects) -> None:
        await self._ask("flush", effects)

    async def records(
        self, collection: str, after_key: str | None, limit: int
    ) -> list[dict[str, Any]]:
        page = await self._ask("records", (collection, after_key, limit))
        return msgspec.msgpack.decode(page, type=list[dict[str, Any]])

    async def cursors(self, job: Claimed) -> dict[str, Any]:
        return msgspec.msgpack.decode(await self._ask("cursors", ()), type=dict[str, Any])

    async def _ask(self, service: str, body: Any) -> bytes:
        self._asked += 1
        number = self._asked
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        try:
            await self._channel.send(Ask(number, service, pack(body)))
            return await answered
        finally:
            del self._waiting[number]

    def hear(self, answer: Answer | Refusal) -> None:
        answered = self._waiting.get(answer.number)
        if answered is None or answered.done():
            return
        if isinstance(answer, Refusal):
            answered.set_exception(error_from(answer))
        else:
            answered.set_result(answer.body)


class Child:
    """One attempt after the other, until the channel closes."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._proxy = Proxy(channel)
        self._performer = Performer(
            clock=SystemClock(), services=self._proxy, threads=Threads(max_threads=4)
        )
        self._sending: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        while (message := await self._channel.receive()) is not None:
            match message:
                case Begin(charge):
                    await self._begin(charge)
                case Answer() | Refusal():
                    self._proxy.hear(message)

    async def _begin(self, charge: Charge) -> None:
        try:
            work = _work(charge)
        except BaseException as error:
            await self._channel.send(end_of(outcome_of(error)))
            return
        await self._channel.send(Ready())
        self._performer.start(work, self._done)

    def _done(self, job: Claimed, outcome: Outcome) -> None:
        self._sending = asyncio.get_running_loop().create_task(self._channel.send(end_of(outcome)))


def _work(charge: Charge) -> Work:
    graph = load(charge.pipeline)
    stage = graph.stage(charge.stage)
    if stage is None:
        raise PipelineError(f"pipeline {charge.pipeline!r} has no stage {charge.stage!r}")
    # A child may have been started after the worker, and have newer code.
    configured = with_params(charge.source, charge.run.options.params)
    source = replace(charge.source, version=version_of(graph, configured))
    # Time is kept by the worker, which can kill.
    return Work(charge.job, stage, graph, source, charge.run, inf)


@cache
def load(pipeline: str) -> Graph:
    """The graph of `module:name`, behind its connector and of its profile if it has them; loaded once."""
    connector, _, own = pipeline.rpartition("|")
    own, _, profile = own.partition("@")
    module, _, name = own.partition(":")
    if connector and not own:
        return connected(connector, None).compile()
    found = getattr(importlib.import_module(module), name, None) if module else None
    if not isinstance(found, (Pipeline, Registry)):
        raise PipelineError(f"{pipeline!r} does not name a pipeline that a child process can load")
    made = pipeline_of(found, msgspec.json.decode(profile) if profile else "")
    return connected(connector, made).compile() if connector else made.compile()


async def _main(descriptor: int) -> None:
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor))
    await Child(Channel(reader, writer)).serve()
    # The worker is gone, so nobody wants what still runs here: it and all it has started must go.
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    descriptor, root = int(sys.argv[1]), sys.argv[2]
    _die_with_parent()
    os.set_inheritable(descriptor, False)
    # A process forked by a step would hold the channel open, and hide our death from the worker.
    os.register_at_fork(after_in_child=lambda: os.close(descriptor))
    put_on_path(Path(root))
    asyncio.run(_main(descriptor))


if __name__ == "__main__":
    main()
