"""Tools for testing pipelines: virtual time, a scripted network, and whole projects run in a moment.

    clock = VirtualClock()
    with Simulation(project, network, seed=1, clock=clock) as simulation:
        run = project.run("acme.com")
        simulation.run()
        assert project.runs.get(run).state == "completed"

Under a simulation nothing waits and nothing is random: the same project, network and seed give the
same journal, byte for byte.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from contextvars import Context
from types import TracebackType
from typing import TypeVarTuple

from penstock.clock import SyncedClock
from penstock.engine.worker.builder import Resources, WorkerBuilder, source_configs
from penstock.engine.worker.calls import Inline
from penstock.engine.worker.loop import Worker
from penstock.engine.worker.threads import InlineThreads
from penstock.gates.project_terms import rules_of
from penstock.http.browser.browsers import Browsers
from penstock.http.network import Network, RawResponse, Request
from penstock.project import Project
from penstock.snapshots import open_snapshots
from penstock.store.rows import EventRow

__all__ = [
    "RawResponse",
    "Request",
    "ScriptedNetwork",
    "Simulation",
    "VirtualClock",
    "VirtualLoop",
    "answer",
    "journal",
    "run_together",
]

EPOCH = 1_800_000_000.0
SOONEST_S = 1e-6
# For what is real in a simulation, in seconds of real time.
LONGEST_REAL_WAIT_S = 120.0
Ts = TypeVarTuple("Ts")
Script = Callable[[Request], Awaitable[RawResponse]]


class VirtualClock:
    """A clock that moves only when it is told to."""

    def __init__(self, now: float = EPOCH) -> None:
        self._elapsed = 0.0
        self._epoch = now
        self._holds = 0

    def now(self) -> float:
        return self._epoch + self._elapsed

    def monotonic(self) -> float:
        return self._elapsed

    def advance(self, seconds: float) -> None:
        self._elapsed += seconds

    @contextmanager
    def held(self) -> Iterator[None]:
        """Time stands still in here: what is waited for, such as a browser, is real and takes real time."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1

    @property
    def is_held(self) -> bool:
        return self._holds > 0


class _InstantSelector(selectors.SelectSelector):
    """Instead of waiting for a timer, moves the clock to it."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._clock.is_held and timeout != 0:
            ready = super().select(LONGEST_REAL_WAIT_S)
            if not ready:
                raise RuntimeError("nothing came of what is real, and was waited for")
            return ready
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError(
                "nothing is due and nothing is running: the simulation would never end"
            )
        if not ready and timeout:
            self._clock.advance(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on virtual time: a sleep of an hour takes no time and ends an hour later."""

    is_virtual = True

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(_InstantSelector(clock))
        self._virtual = clock

    def time(self) -> float:
        return self._virtual.monotonic()

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        # A timer that is all but due is fired at once: no time would pass, and who looks at the clock
        # to see whether it was time would wait again, for ever.
        return super().call_at(max(when, self.time() + SOONEST_S), callback, *args, context=context)


def answer(
    body: str | bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> RawResponse:
    """What a server answers; as HTML in UTF-8, unless the headers say otherwise."""
    told = {"content-type": "text/html; charset=utf-8", **(headers or {})}
    lower = {name.lower(): value for name, value in told.items()}
    return RawResponse(status, lower, body.encode() if isinstance(body, str) else body)


class ScriptedNetwork:
    """A network that answers from a function: `async def script(request) -> RawResponse`."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[str] = []

    @classmethod
    def of_pages(cls, pages: Mapping[str, str | bytes | RawResponse]) -> ScriptedNetwork:
        """A network that knows these addresses and answers 404 to all others, robots.txt included.

        The pages are looked up at each request: change the mapping, and the site has changed.
        """

        async def answer_from(request: Request) -> RawResponse:
            found = pages.get(request.url, answer("", status=404))
            return found if isinstance(found, RawResponse) else answer(found)

        return cls(answer_from)

    async def send(self, request: Request) -> RawResponse:
        self.requests.append(request.url)
        async with asyncio.timeout(request.timeout_s):
            return await self._script(request)

    async def close(self) -> None:
        return None


class Simulation:
    """A worker of a project on virtual time, with a scripted network and seeded chance.

    `browsers` draw pages for it, if it has any: `Browsers(clock.held)`, which whoever made them closes.
    """

    def __init__(
        self,
        project: Project,
        network: Network,
        *,
        seed: int,
        clock: VirtualClock,
        browsers: Browsers | None = None,
    ) -> None:
        project.clock = clock
        self._project = project
        self._clock = SyncedClock(clock)
        self._loop = VirtualLoop(clock)
        self._rng = random.Random(seed)
        self._store = project.connection
        self._name = f"sim-{seed}"
        self._snapshots = open_snapshots(project.settings.snapshots, self._name)
        self._network = network
        self._browsers = browsers

    def __enter__(self) -> Simulation:
        self._store.workers.register(self._name, "simulated", 1, "simulated")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.close()
        self._snapshots.close()

    def run(self, for_s: float | None = None) -> None:
        """Work until every run has ended, or for `for_s` virtual seconds and then drain."""
        self._loop.run_until_complete(self.work(for_s))

    async def work(self, for_s: float | None = None) -> None:
        """The same as a coroutine, to be run beside others."""
        if not self._store.workers.beat(self._name):  # it signed off when it had nothing more to do
            self._store.workers.register(self._name, "simulated", 1, "simulated")
        worker = self._worker()
        beating = asyncio.create_task(self._beat())
        if for_s is not None:
            asyncio.get_running_loop().call_later(for_s, worker.drain)
        try:
            await worker.work(until=lambda: not self._store.overview().active_runs)
        finally:
            beating.cancel()

    def upkeep(self) -> int:
        """Do the leader's chores: reset budgets whose period has ended. Returns how many jobs it released."""
        bounds = rules_of(self._project.settings).lasting()
        released = 0
        while batch := self._store.budgets.renew(bounds):
            released += batch
        return released

    async def _beat(self) -> None:
        while self._store.workers.beat(self._name):
            await asyncio.sleep(5.0)

    def _worker(self) -> Worker:
        project, inline = self._project, Inline()
        resources = Resources(
            store=self._store,
            index=self._store,
            calls=inline,
            writing=inline,
            reading=inline,
            snapshots=self._snapshots,
            network=self._network,
            clock=self._clock,
            rng=self._rng,
            threads=InlineThreads(),
            browsers=self._browsers,
        )
        return WorkerBuilder(
            name=self._name,
            project=project,
            sources=source_configs(project, project.ready_sources()),
            resources=resources,
            tell=lambda text: None,
        ).build()


def run_together(clock: VirtualClock, *simulations: Simulation) -> None:
    """Work until every run has ended, with several workers at once, as on several hosts.

    Each has a project of its own, loaded from the same folder, and all have the same clock.
    """

    async def work() -> None:
        async with asyncio.TaskGroup() as together:
            for simulation in simulations:
                together.create_task(simulation.work())

    with closing(VirtualLoop(clock)) as loop:
        loop.run_until_complete(work())


def journal(project: Project) -> list[EventRow]:
    """The whole journal, oldest first."""
    found: list[EventRow] = []
    while page := project.connection.journal.events(
        after_id=found[-1].id if found else 0, limit=5000
    ):
        found.extend(page)
    return found
