"""Attempts that are a task on the event loop; their plain parts hop through a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from penstock.engine.worker.performance import Done, Performance, Work, is_kept
from penstock.engine.worker.step_output import performing
from penstock.jobs.outcome import Cancelled, Outcome, Succeeded
from penstock.pipeline.attempt import Attempt
from penstock.pipeline.error_outcome import outcome_of, timed_out
from penstock.pipeline.outflow import Outflow
from penstock.pipeline.probe_limits import Enough
from penstock.pipeline.walk import item_of, walk_async

if TYPE_CHECKING:
    from penstock.engine.worker.perform import Performer

# How long a task that was cancelled may take to come to its end before it is given up.
CANCEL_GRACE_S = 1.0


class OnTask(Performance):
    """An attempt that is a task on the loop."""

    __slots__ = ("grace", "task", "verdict")

    task: asyncio.Task[Outcome]

    def __init__(self, performer: Performer, work: Work, done: Done) -> None:
        super().__init__(performer, work, done)
        # Until when a task that was cancelled may take.
        self.grace: asyncio.TimerHandle | None = None
        self.verdict: Outcome | None = None

    def begin(self) -> None:
        outer = performing.set(self.job)
        try:
            # The task has a copy of the context as it is now.
            self.task = self.performer.loop().create_task(self.perform())
        finally:
            performing.reset(outer)
        self.task.add_done_callback(self._ended)

    async def perform(self) -> Outcome:
        raise NotImplementedError

    def cancel(self, reason: str) -> None:
        self.stop(Cancelled(reason))

    def halt(self, reason: str) -> None:
        self.cancel(reason)

    def stop(self, verdict: Outcome) -> None:
        """Cancel the task. Its outcome is settled now: a step that catches the cancellation and
        goes on has nothing left to say."""
        if self.verdict is not None or self.task.done():
            return
        self.verdict = verdict
        self.fence()
        self.task.cancel()
        self.performer.expiries.drop(self)
        if self.grace is not None:
            self.grace.cancel()
        self.grace = self.performer.loop().call_later(CANCEL_GRACE_S, self._give_up)

    def _give_up(self) -> None:
        self.performer.lost_tasks.add(self.task)
        if self.verdict is not None:
            self.conclude(self.verdict)

    def _ended(self, task: asyncio.Task[Outcome]) -> None:
        self.performer.expiries.drop(self)
        if self.grace is not None:
            self.grace.cancel()
        if self.is_over:
            self.performer.lost_tasks.discard(task)
            return
        self.conclude(self.verdict or self._outcome_of(task))

    def _outcome_of(self, task: asyncio.Task[Outcome]) -> Outcome:
        try:
            return task.result()
        except BaseException as error:
            return outcome_of(error, self.stage.errors)

    def expire(self) -> None:
        self.stop(timed_out(self.timeout_s))


class OnLoop(OnTask):
    """Async and mixed stages, and every run-level stage, because it flushes on its way."""

    __slots__ = ()

    def begin(self) -> None:
        loop = self.performer.loop()
        if not self.performer.threads.is_inline and self.stage.isolation != "inline":
            self.loop = loop
            self.hops = True
        if self.stage.unit == "run":
            self.outflow = Outflow(self, loop, self._fail)
        super().begin()
        self.performer.expiries.set(self, self.timeout_s)

    async def perform(self) -> Outcome:
        try:
            with suppress(Enough):
                await walk_async(self.stage.root, item_of(self), self)
            return Succeeded(await self.harvest())
        except BaseException as error:
            # Whoever stops it on purpose has given its verdict before: a step that cancels itself has failed.
            outcome = self.verdict or self.judged(error)
        if self.verdict is None and is_kept(outcome):
            outcome = await self.keep(outcome)
        if self.outflow is not None:
            self.outflow.stop()
        return outcome

    def fence(self) -> None:
        super().fence()
        if self.outflow is not None:
            self.outflow.stop()

    def postpone(self, by_s: float) -> None:
        self.performer.expiries.postpone(self, by_s)

    def _fail(self, error: BaseException) -> None:
        self.stop(outcome_of(error, self.stage.errors))

    async def hop(self, steps: Callable[[], None]) -> None:
        """Perform these steps in a thread; if the wait is cancelled, the thread is given up."""
        errand = Hop(self, steps, self.performer.loop().create_future())
        self.performer.threads.submit(errand)
        try:
            error = await errand.ended
        except asyncio.CancelledError:
            self.fence()
            self.performer.threads.abandon(errand)
            raise
        if error is not None:
            raise error


class Hop:
    """The plain part of a stage, on its way through a thread."""

    __slots__ = ("_attempt", "_error", "_steps", "ended", "timeout_s")

    def __init__(
        self,
        attempt: Attempt,
        steps: Callable[[], None],
        ended: asyncio.Future[BaseException | None],
    ) -> None:
        self._attempt = attempt
        self._steps = steps
        self._error: BaseException | None = None
        self.ended = ended
        self.timeout_s = inf

    def act(self) -> None:
        if self._attempt.is_fenced:
            return
        outer = performing.set(self._attempt.job)
        try:
            self._steps()
        except BaseException as error:
            self._error = error
        finally:
            performing.reset(outer)

    def finish(self) -> None:
        # As a result, not as an exception: a future refuses StopIteration.
        if not self.ended.done():
            self.ended.set_result(self._error)

    def expire(self) -> None:
        self.finish()
