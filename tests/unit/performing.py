"""What the tests of performing share: an engine that is only a list, and a way to run one attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from penstock.clock import SystemClock
from penstock.engine.worker.in_child import ChildPool
from penstock.engine.worker.perform import Performer, ThreadPool
from penstock.engine.worker.performance import Work
from penstock.engine.worker.threads import InlineThreads
from penstock.errors import PipelineError
from penstock.http.door import Door
from penstock.http.response import Response
from penstock.jobs.effects import Effects
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Outcome
from penstock.pipeline.attempt import BeforeRequest, StepRun, StepSource
from penstock.pipeline.graph import Graph
from penstock.pipeline.pipeline import Pipeline
from penstock.testing import VirtualClock, VirtualLoop

Answer = TypeVar("Answer")


@dataclass
class ListedServices:
    """Keeps what is flushed in a list. `trouble` is raised by fetch and flush, when there is any."""

    flushed: list[Effects] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    pages: dict[str, bytes] = field(default_factory=dict)
    collection: list[dict[str, Any]] = field(default_factory=list)
    checkpoints: dict[str, Any] = field(default_factory=dict)
    trouble: Exception | None = None
    room: asyncio.Semaphore | None = None
    asked: int = 0

    async def fetch(self, job: Claimed, url: str, **options: Any) -> Response:
        self.fetched.append(url)
        if self.trouble is not None:
            raise self.trouble
        body = self.pages.get(url, b"page")
        return Response(url, url, 200, {}, body, 0.0, snapshot_id=len(self.fetched))

    def door(self, job: Claimed, host: str, port: int, *, tls: bool, begin: BeforeRequest) -> Door:
        raise PipelineError("nothing here opens connections")

    async def flush(self, job: Claimed, effects: Effects) -> None:
        self.asked += 1
        if self.room is not None:
            await self.room.acquire()
        if self.trouble is not None:
            raise self.trouble
        self.flushed.append(effects)

    async def records(
        self, collection: str, after_key: str | None, limit: int
    ) -> list[dict[str, Any]]:
        return [each for each in self.collection if each["key"] > (after_key or "")][:limit]

    async def cursors(self, job: Claimed) -> dict[str, Any]:
        return self.checkpoints

    @property
    def children(self) -> list[Any]:
        return [
            msgspec.json.decode(job.item) for effects in self.flushed for job in effects.children
        ]


class Bench:
    """A performer with one pipeline, and the outcomes of what was started."""

    def __init__(
        self,
        pipeline: Pipeline | Graph,
        services: ListedServices | None = None,
        threads: ThreadPool | None = None,
        children: ChildPool | None = None,
        source: StepSource | None = None,
    ) -> None:
        self.graph = pipeline.compile() if isinstance(pipeline, Pipeline) else pipeline
        self.services = services or ListedServices()
        self.performer = Performer(
            clock=SystemClock(),
            services=self.services,
            threads=threads or InlineThreads(),
            children=children,
        )
        self.source = source or StepSource("acme.com", {"depth": 2})
        self.outcomes: list[tuple[int, Outcome]] = []
        self._ended: dict[int, asyncio.Future[Outcome]] = {}

    def start(
        self, stage: str, item: Any = None, *, job_id: int = 1, timeout_s: float = 60.0
    ) -> asyncio.Future[Outcome]:
        encoded = item.decode() if isinstance(item, bytes) else msgspec.json.encode(item).decode()
        found = self.graph.stage(stage)
        assert found is not None
        job = Claimed(job_id, 7, 3, stage, f"key-{job_id}", 1, 0, 0, 0, False, encoded)
        self._ended[job_id] = asyncio.get_running_loop().create_future()
        work = Work(job, found, self.graph, self.source, StepRun(7), timeout_s)
        self.performer.start(work, self._done)
        return self._ended[job_id]

    def _done(self, job: Claimed, outcome: Outcome) -> None:
        self.outcomes.append((job.id, outcome))
        self._ended[job.id].set_result(outcome)


def virtually(call: Coroutine[Any, Any, Answer]) -> Answer:
    """Run this on virtual time: what waits an hour takes no time."""
    loop = VirtualLoop(VirtualClock())
    try:
        return loop.run_until_complete(call)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def attempt(
    pipeline: Pipeline, stage: str, item: Any = None, services: ListedServices | None = None
) -> Outcome:
    """What one attempt comes to, with everything on a loop of virtual time."""

    async def perform() -> Outcome:
        return await Bench(pipeline, services).start(stage, item)

    return virtually(perform())


async def until(is_so: Callable[[], bool]) -> None:
    """Let the loop turn until this is so."""
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0.001)


def begun(name: str = "p") -> Pipeline:
    """A pipeline with a root, `begin`, for steps to come after."""
    pipeline = Pipeline(name)

    @pipeline.step(unit="run")
    def begin() -> None:
        return None

    return pipeline
