"""Performing: an attempt is started where its steps belong, and ends in exactly one outcome.

Async stages run as a task on the loop, plain ones in a thread, `isolation="process"` in a child.
However it goes, `done` is called once, on the loop; whatever a stopped attempt does later is void.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol, TypeAlias

from msgspec.structs import replace

from penstock.clock import Clock
from penstock.engine.worker.step_output import performing
from penstock.engine.worker.threads import Errand
from penstock.http.response import Response
from penstock.jobs.effects import Effects
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Cancelled, Outcome, Skipped, Snoozed, Succeeded
from penstock.pipeline.attempt import Attempt, RunView, Services, SourceView
from penstock.pipeline.graph import Graph, Stage
from penstock.pipeline.outflow import Outflow
from penstock.pipeline.probing import Enough
from penstock.pipeline.step import DataError
from penstock.pipeline.verdict import outcome_of, timed_out
from penstock.pipeline.walk import item_of, walk_async, walk_plain

# How long a task that was cancelled may take to come to its end before it is given up.
CANCEL_GRACE_S = 1.0

Done: TypeAlias = Callable[[Claimed, Outcome], None]


@dataclass(slots=True)
class Work:
    """One claimed job with all that performing it needs."""

    job: Claimed
    stage: Stage
    graph: Graph
    source: SourceView
    run: RunView
    timeout_s: float
    # Moves the end of its time, where somebody else than the loop keeps it.
    postpone: Callable[[float], None] | None = None


class ThreadPool(Protocol):
    is_inline: bool

    @property
    def lost(self) -> int: ...

    def submit(self, errand: Errand) -> None: ...

    def abandon(self, errand: Errand) -> None: ...


class ChildPool(Protocol):
    async def perform(self, work: Work, services: Services) -> Outcome:
        """Perform in a child process, within the work's time; a cancelled call kills the child."""


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
        self._running: dict[tuple[int, int], _Performance] = {}

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

    def forget(self, performance: _Performance) -> None:
        del self._running[performance.job.id, performance.job.attempt]

    def _performance(self, work: Work, done: Done) -> _Performance:
        stage = work.stage
        if stage.isolation == "process" and self.children is not None:
            return _InChild(self, work, done, self.children)
        is_whole = stage.unit != "run"
        if is_whole and not stage.is_async:
            return _InThread(self, work, done)
        return _OnLoop(self, work, done)


class _Performance(Attempt):
    """An attempt with its way to the end. `conclude` is the only exit."""

    __slots__ = ("done", "is_over", "performer", "timeout_s")

    def __init__(self, performer: Performer, work: Work, done: Done) -> None:
        super().__init__(
            work.job, work.stage, work.source, work.run, performer.services, performer.clock
        )
        self.performer = performer
        self.timeout_s = work.timeout_s
        self.done = done
        self.is_over = False

    def begin(self) -> None:
        raise NotImplementedError

    def cancel(self, reason: str) -> None:
        raise NotImplementedError

    def postpone(self, by_s: float) -> None:
        """Move the end of its time; a plain stage fetches nothing, and waits for nobody."""

    def conclude(self, outcome: Outcome) -> None:
        """End the attempt, if it has not ended yet."""
        if self.is_over:
            return
        self.is_over = True
        self.fence()
        self.performer.forget(self)
        self.done(self.job, self.billed(outcome))

    def billed(self, outcome: Outcome) -> Outcome:
        """The outcome with what was spent on the way to it, unless it brings its effects."""
        if isinstance(outcome, Succeeded) or (isinstance(outcome, Skipped) and outcome.effects):
            return outcome
        spent = self.unwritten_spending()
        return replace(outcome, spent=spent) if spent else outcome

    def judged(self, error: BaseException) -> Outcome:
        """What the attempt came to by this; a window in which there was nothing is done with, too."""
        outcome = outcome_of(error, self.stage.errors)
        if (
            isinstance(outcome, Skipped)
            and not outcome.is_rejection
            and outcome.why != "disallowed"
        ):
            try:
                self.cover()
            except DataError as unreadable:
                return outcome_of(unreadable, self.stage.errors)
        return outcome

    async def keep(self, outcome: Outcome) -> Outcome:
        """Skip and Snooze are good ends: what was buffered on the way there is written first."""
        if isinstance(outcome, Skipped):
            self.skip(outcome.why == "unchanged")
            if outcome.why == "unchanged":
                # Most pages of a run may end like this: no turn is taken for it but the last.
                return replace(outcome, effects=self.effects) if self.effects else outcome
        if isinstance(outcome, Snoozed) and not outcome.is_cut:
            self.effects.forgets = self.has_committed or bool(self.effects)
        try:
            await self.write_buffered()
        except Exception as error:
            return outcome_of(error, self.stage.errors)
        return outcome


def _is_kept(outcome: Outcome) -> bool:
    match outcome:
        case Snoozed():
            return True
        case Skipped(_, is_rejection):
            return not is_rejection
    return False


class _InThread(_Performance):
    """A plain page or candidate stage: one errand, no task, all or nothing."""

    __slots__ = ("outcome", "task")

    outcome: Outcome

    def begin(self) -> None:
        threads = self.performer.threads
        if threads.is_inline or self.stage.isolation == "inline":
            self.run_steps()
            self.finish()
        else:
            self.loop = self.performer.loop()
            threads.submit(self)

    def act(self) -> None:
        if not self.is_fenced:
            self.run_steps()

    def run_steps(self) -> None:
        outer = performing.set(self.job)
        try:
            with suppress(Enough):
                walk_plain(self.stage.root, item_of(self), self)
            self.outcome = Succeeded(self.reap())
        except BaseException as error:
            self.outcome = self.judged(error)
        finally:
            performing.reset(outer)

    def finish(self) -> None:
        if self.is_over:
            return
        if _is_kept(self.outcome) and self.effects:
            self.task = self.performer.loop().create_task(self._keep_and_conclude())
        else:
            self.conclude(self.outcome)

    async def _keep_and_conclude(self) -> None:
        self.conclude(await self.keep(self.outcome))

    def expire(self) -> None:
        self.conclude(timed_out(self.timeout_s))

    def cancel(self, reason: str) -> None:
        self.conclude(Cancelled(reason))
        self.performer.threads.abandon(self)


class _OnTask(_Performance):
    """An attempt that is a task on the loop."""

    __slots__ = ("task", "timer", "verdict")

    task: asyncio.Task[Outcome]

    def __init__(self, performer: Performer, work: Work, done: Done) -> None:
        super().__init__(performer, work, done)
        self.timer: asyncio.TimerHandle | None = None
        self.verdict: Outcome | None = None

    def begin(self) -> None:
        context = copy_context()
        context.run(performing.set, self.job)
        self.task = self.performer.loop().create_task(self.perform(), context=context)
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
        self._set_timer(CANCEL_GRACE_S, self._give_up)

    def _give_up(self) -> None:
        self.performer.lost_tasks.add(self.task)
        if self.verdict is not None:
            self.conclude(self.verdict)

    def _ended(self, task: asyncio.Task[Outcome]) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.is_over:
            self.performer.lost_tasks.discard(task)
            return
        self.conclude(self.verdict or self._outcome_of(task))

    def _outcome_of(self, task: asyncio.Task[Outcome]) -> Outcome:
        try:
            return task.result()
        except BaseException as error:
            return outcome_of(error, self.stage.errors)

    def _set_timer(self, delay_s: float, act: Callable[[], None]) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.performer.loop().call_later(delay_s, act)


class _OnLoop(_OnTask):
    """Async and mixed stages, and every run-level stage, because it flushes on its way."""

    __slots__ = ()

    def begin(self) -> None:
        loop = self.performer.loop()
        if not self.performer.threads.is_inline and self.stage.isolation != "inline":
            self.loop = loop
            self.hop = self._hop
        if self.stage.unit == "run":
            self.outflow = Outflow(self, loop, self._fail)
        super().begin()
        self._set_timer(self.timeout_s, self._expire)

    async def perform(self) -> Outcome:
        try:
            with suppress(Enough):
                await walk_async(self.stage.root, item_of(self), self)
            return Succeeded(await self.harvest())
        except BaseException as error:
            # Whoever stops it on purpose has given its verdict before: a step that cancels itself has failed.
            outcome = self.verdict or self.judged(error)
        if self.verdict is None and _is_kept(outcome):
            outcome = await self.keep(outcome)
        if self.outflow is not None:
            self.outflow.stop()
        return outcome

    def fence(self) -> None:
        super().fence()
        if self.outflow is not None:
            self.outflow.stop()

    def postpone(self, by_s: float) -> None:
        if self.timer is not None and self.verdict is None:
            left_s = self.timer.when() - self.performer.loop().time()
            self._set_timer(max(0.0, left_s + by_s), self._expire)

    def _expire(self) -> None:
        self.stop(timed_out(self.timeout_s))

    def _fail(self, error: BaseException) -> None:
        self.stop(outcome_of(error, self.stage.errors))

    async def _hop(self, steps: Callable[[], None]) -> None:
        """Perform these steps in a thread; if the wait is cancelled, the thread is given up."""
        errand = _Hop(self, steps, self.performer.loop().create_future())
        self.performer.threads.submit(errand)
        try:
            error = await errand.ended
        except asyncio.CancelledError:
            self.fence()
            self.performer.threads.abandon(errand)
            raise
        if error is not None:
            raise error


class _Hop:
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


class _InChild(_OnTask):
    """An attempt in a child process. The child's pool keeps the time, and kills to keep it."""

    __slots__ = ("children", "work")

    def __init__(self, performer: Performer, work: Work, done: Done, children: ChildPool) -> None:
        super().__init__(performer, work, done)
        self.children = children
        self.work = work

    async def perform(self) -> Outcome:
        try:
            return await self.children.perform(self.work, _ChildServices(self))
        except Exception as error:
            return outcome_of(error, self.stage.errors)


class _ChildServices:
    """What a child asks for is where its attempt can be paused: before a fetch, after a commit."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._services = attempt.services

    async def fetch(self, job: Claimed, url: str, **options: Any) -> Response:
        await self._attempt.pause_point()
        return await self._services.fetch(job, url, **options)

    async def flush(self, job: Claimed, effects: Effects) -> None:
        await self._services.flush(job, effects)
        await self._attempt.pause_point()

    async def records(
        self, collection: str, after_key: str | None, limit: int
    ) -> list[dict[str, Any]]:
        return await self._services.records(collection, after_key, limit)

    async def cursors(self, job: Claimed) -> dict[str, Any]:
        return await self._services.cursors(job)
