"""Performing: an attempt is started where its steps belong, and ends in exactly one outcome.

Async stages run as a task on the loop, plain ones in a thread, `isolation="process"` in a child.
However it goes, `done` is called once, on the loop; whatever a stopped attempt does later is void.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from penstock.clock import Clock
from penstock.engine.worker.expiries import Expiries
from penstock.engine.worker.in_child import ChildPool, InChild
from penstock.engine.worker.in_thread import InThread
from penstock.engine.worker.on_loop import OnLoop
from penstock.engine.worker.performance import Done, Performance, Work
from penstock.engine.worker.threads import Errand
from penstock.jobs.outcome import Outcome
from penstock.pipeline.attempt import Services


class ThreadPool(Protocol):
    is_inline: bool

    @property
    def lost(self) -> int: ...

    def submit(self, errand: Errand) -> None: ...

    def abandon(self, errand: Errand) -> None: ...


class Performer:
    """Starts attempts and sees each to its end. Belongs to one event loop."""

    def __init__(
        self,
        *,
        clock: Clock,
        services: Services,
        threads: ThreadPool,
        children: ChildPool | None = None,
    ) -> None:
        self.clock = clock
        self.services = services
        self.threads = threads
        self.children = children
        # Held here, because the loop alone does not keep what nothing else waits for.
        self.lost_tasks: set[asyncio.Task[Outcome]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: dict[tuple[int, int], Performance] = {}
        self.expiries = Expiries(self.loop)

    @property
    def running(self) -> int:
        """How many works have not ended."""
        return len(self._running)

    @property
    def lost_threads(self) -> int:
        """Threads and tasks that are stuck in an attempt that was given up."""
        return self.threads.lost + len(self.lost_tasks)

    def start(self, work: Work, done: Done) -> None:
        """Begin an attempt. `done` may be called before this returns, for a stage that runs inline."""
        performance = self._performance(work, done)
        self._running[work.job.id, work.job.attempt] = performance
        performance.begin()

    def cancel(self, job_id: int, reason: str) -> None:
        """Stop the attempts of this job; their outcome is Cancelled, whatever they do about it."""
        for performance in list(self._running.values()):
            if performance.job.id == job_id:
                performance.cancel(reason)

    def halt(self, reasons: Mapping[int, str]) -> None:
        """Have the attempts of these jobs stop at their next pause point, and let all others go on."""
        for performance in self._running.values():
            performance.halt_reason = reasons.get(performance.job.id, "")

    def postpone(self, job_id: int, attempt: int, by_s: float) -> None:
        """Move the end of an attempt's time."""
        performance = self._running.get((job_id, attempt))
        if performance is not None:
            performance.postpone(by_s)

    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def forget(self, performance: Performance) -> None:
        del self._running[performance.job.id, performance.job.attempt]

    def _performance(self, work: Work, done: Done) -> Performance:
        stage = work.stage
        if stage.isolation == "process" and self.children is not None:
            return InChild(self, work, done, self.children)
        is_whole = stage.unit != "run"
        if is_whole and not stage.is_async:
            return InThread(self, work, done)
        return OnLoop(self, work, done)
