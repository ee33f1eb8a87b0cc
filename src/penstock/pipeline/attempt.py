"""An attempt in progress: one try at a job, what it may ask for, and what it has buffered so far."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import msgspec

from penstock.errors import PipelineError
from penstock.http.reach import ANYWHERE, Reach
from penstock.jobs.effects import MOST_EFFECT_BYTES, MOST_EFFECTS, Announced, Covered, Effects
from penstock.jobs.job import DEFAULT_PRIORITY, Claimed, NewJob
from penstock.jobs.outcome import AttemptLost, Reject, Skip
from penstock.jobs.run import NO_OPTIONS, RunOptions
from penstock.jobs.run_policy import RunPolicy, policy_of
from penstock.jobs.signals import SignalFacts
from penstock.pipeline.fetch_options import Missing
from penstock.pipeline.probe_limits import FewPages, OneOfEach
from penstock.pipeline.step import DataError, window_of
from penstock.pipeline.visits import Visits

if TYPE_CHECKING:
    from penstock.clock import Clock
    from penstock.http.door import Door
    from penstock.http.response import Response
    from penstock.jobs.windows import Window
    from penstock.pipeline.graph import Stage
    from penstock.pipeline.outflow import Outflow

Answer = TypeVar("Answer")
# Brings what is stored under an address of its own: a file, or the answer to a request that is not a plain
# GET of it. It is given the ETag and Last-Modified of what is stored there.
Bring: TypeAlias = "Callable[[str | None, str | None], Awaitable[Response]]"
BeforeRequest: TypeAlias = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class StepSource:
    """The source as a step sees it. `pipeline` is what a child process loads its steps by."""

    key: str
    params: dict[str, Any] = field(default_factory=dict)
    timeout_s: float = 60.0
    priority: int = DEFAULT_PRIORITY
    pipeline: str = ""
    # What is saved with a score below this is rejected instead.
    threshold: float | None = None
    # Of the code and configuration that this worker performs its steps with.
    version: str = ""
    reach: Reach = ANYWHERE
    # Whether pages that are not there fail or are skipped.
    missing: Missing = "fail"
    # The JSON Schemas of collections, by name.
    schemas: dict[str, Any] = field(default_factory=dict)
    # The files that its schedules watch for, as absolute patterns.
    watched: tuple[str, ...] = ()
    # What the file says in the keys of its connector, and the folder of that file.
    options: dict[str, Any] = field(default_factory=dict)
    root: str = ""


@dataclass(frozen=True, slots=True)
class StepRun:
    """The run as a step sees it."""

    id: int
    kind: str = "full"
    options: RunOptions = NO_OPTIONS
    of_run_id: int | None = None
    pipeline_version: str = ""

    @property
    def policy(self) -> RunPolicy:
        return policy_of(self.kind, self.options)

    @property
    def signal(self) -> SignalFacts | None:
        """The signal that started it, with its data; None if it was started otherwise."""
        return self.options.signal


class Services(Protocol):
    """What the engine does for an attempt. All of it happens on the event loop."""

    async def fetch(self, job: Claimed, url: str, **options: Any) -> Response: ...

    def door(self, job: Claimed, host: str, port: int, *, tls: bool, begin: BeforeRequest) -> Door:
        """The way to a host for other protocols; `begin` is awaited before each request."""
        ...

    async def flush(self, job: Claimed, effects: Effects) -> None:
        """Durable when it returns; raises AttemptLost when the attempt no longer owns its job."""

    async def records(
        self, collection: str, after_key: str | None, limit: int
    ) -> list[dict[str, Any]]: ...

    async def cursors(self, job: Claimed) -> dict[str, Any]:
        """How far the partitions of the job's source have come; for a backfill, how far it has itself."""
        ...


class Attempt:
    """All that one walk through a stage shares.

    Belongs to one thread at a time: the loop, or the thread that a plain step runs in while the
    loop waits for it. Only `fence` and the outflow may be touched from the other side.
    """

    __slots__ = (
        "clock",
        "dropped",
        "effects",
        "halt_reason",
        "has_arrived",
        "has_committed",
        "held",
        "held_bytes",
        "hops",
        "is_fenced",
        "job",
        "loop",
        "made_with",
        "new_page",
        "outflow",
        "pending",
        "probe",
        "run",
        "saved",
        "services",
        "snapshot",
        "source",
        "stage",
        "trouble",
        "visits",
    )

    def __init__(
        self,
        job: Claimed,
        stage: Stage,
        source: StepSource,
        run: StepRun,
        services: Services,
        clock: Clock,
    ) -> None:
        self.job = job
        self.stage = stage
        self.source = source
        self.run = run
        self.services = services
        self.clock = clock
        self.effects = Effects()
        self.has_arrived = False
        self.has_committed = False
        self.is_fenced = False
        # Why the attempt must stop at its next pause point; empty while it may go on.
        self.halt_reason = ""
        self.saved = 0
        self.held = 0
        self.held_bytes = 0
        self.dropped: Skip | Reject | None = None
        # The page that what is saved came from: the one fetched last, or the one the item came from.
        self.snapshot: int | None = job.snapshot
        # What the outcome for a page depends on beside the page and the code; empty for nothing else.
        self.made_with = ""
        # The address of a page of which the listing knew that it was never read.
        self.new_page = ""
        self.trouble: BaseException | None = None
        self.outflow: Outflow | None = None
        policy = run.policy
        is_visiting = stage.unit == "page" and policy.marks_pages_done
        self.visits: Visits | None = Visits() if is_visiting else None
        self.probe: OneOfEach | FewPages | None = None
        if policy.is_one_item:
            self.probe = OneOfEach(stage)
        elif run.options.pages is not None and stage.unit == "run":
            self.probe = FewPages(stage, run.options.pages)
        # Whether plain steps hop to a thread, and how they reach the loop from there. If not, they run
        # on the loop itself, where waiting would stop everyone.
        self.hops = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.pending: concurrent.futures.Future[Any] | None = None

    async def hop(self, steps: Callable[[], None]) -> None:
        """Perform these plain steps in a thread, where `hops` says so."""
        raise NotImplementedError

    @property
    def version(self) -> str:
        """By what its pages are done: what another version has done is done again, unchanged or not."""
        return f"{self.source.version} {self.made_with}".rstrip()

    def guard(self) -> None:
        """Refuse to go on for an attempt that has ended or was fenced off."""
        if self.is_fenced:
            raise AttemptLost(f"attempt {self.job.attempt} of job {self.job.id} is over")

    def fence(self) -> None:
        """Nothing this attempt does from now on counts; a step that waits for the loop is let go."""
        self.is_fenced = True
        if self.pending is not None:
            self.pending.cancel()

    async def pause_point(self) -> None:
        """Stop here if the run was paused or held: what is complete is written first, and no try is spent."""
        if not self.halt_reason:
            return
        if self.outflow is not None:
            await self.outflow.flush()
        reason = self.halt_reason
        self.halt(reason)
        raise AttemptLost(reason)

    def halt(self, reason: str) -> None:
        """End the attempt; its job goes back to the queue."""
        self.fence()

    def enqueue(self, child: NewJob) -> None:
        if self.probe is not None and not self.probe.admits(child):
            return
        if self.outflow is None:
            self.hold(len(child.item))
            self.effects.children.append(child)
        else:
            self.outflow.add(child)

    def hold(self, size: int) -> None:
        """Count what is buffered until the attempt commits: one transaction must be able to write it in time,
        and an endless step must not fill the memory."""
        self.held += 1
        self.held_bytes += size
        if self.held <= MOST_EFFECTS and self.held_bytes <= MOST_EFFECT_BYTES:
            return
        raise DataError(
            f"stage {self.stage.name!r}: an attempt can hold {MOST_EFFECTS:,} records, items and notes, "
            f"or {MOST_EFFECT_BYTES // 1_000_000} MB of them: "
            "call ctx.commit() now and then, or yield them from a run-level step"
        )

    def unwritten_spending(self) -> dict[str, float]:
        """What its steps have spent that no flush has taken to the store."""
        total = Effects()
        waiting = [] if self.outflow is None else self.outflow.waiting()
        for effects in (self.effects, *waiting):
            # A copy: a step that was given up may still be at it, in its thread.
            total.pour(Effects(spent=dict(effects.spent)))
        return total.spent

    def let_go(self) -> None:
        """What was buffered is on its way to the store."""
        self.held = self.held_bytes = 0

    def announce(self, announced: Announced) -> None:
        """At once, not when the step has come to its end: no child may be durable before it."""
        if not announced.changed or not self.run.policy.notes_announced:
            return
        if self.outflow is None:
            self.effects.announced.append(announced)
        else:
            self.outflow.announce(announced)

    async def commit(self) -> None:
        """Make all that is buffered durable now; what fails here fails the attempt in the end."""
        await self.write_buffered()
        await self.pause_point()

    async def write_buffered(self) -> None:
        self.guard()
        if self.outflow is not None:
            await self.outflow.flush_all()
        elif self.effects:
            self.let_go()
            await self.write(self.effects.take())

    async def write(self, effects: Effects) -> None:
        self.has_committed = True
        self.saved += len(effects.saves)
        try:
            await self.services.flush(self.job, effects)
        except Exception as error:
            # A step may catch this, but what was taken from the buffer is gone: it must not succeed.
            self.trouble = error
            raise

    def wait(self, call: Coroutine[Any, Any, Answer], purpose: str) -> Answer:
        """From a plain step in a thread: have the loop do this, and wait until it is done."""
        if self.loop is None:
            call.close()
            raise PipelineError(
                f"stage {self.stage.name!r} runs on the loop, where a plain step can't wait "
                f"for {purpose}: make the step async"
            )
        future = asyncio.run_coroutine_threadsafe(call, self.loop)
        self.pending = future
        if self.is_fenced:
            future.cancel()
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise AttemptLost("the attempt was stopped while it waited") from None
        finally:
            self.pending = None

    async def harvest(self) -> Effects:
        """What is left to write with the end of the attempt."""
        if self.outflow is not None:
            await self.outflow.finish()
        return self.reap()

    def reap(self) -> Effects:
        """As `harvest`, for an attempt that flushes nothing on its way."""
        if self.trouble is not None:
            raise self.trouble
        if self.visits is not None:
            if not self.has_committed and (unchanged := self.visits.unchanged) is not None:
                raise unchanged
            if visited := self.visits.done():
                self.effects.extracted += visited
        effects = self.effects
        came_to_nothing = not self.has_arrived and not self.has_committed and not effects
        if came_to_nothing and self.dropped is not None:
            raise self.dropped
        if self.stage.unit == "candidate":
            effects.is_dropped = came_to_nothing
            effects.saved_before = self.saved
        self.cover()
        return effects

    def window(self) -> Window | None:
        """The window that the job is for, if its stage takes windows."""
        if not self.stage.takes_windows:
            return None
        return window_of(self.stage.name, msgspec.json.decode(self.job.item))

    def cover(self) -> None:
        """What the job was for is ingested, once the attempt has ended well."""
        window = self.window()
        if window is not None:
            stretch = Covered(window.partition, window.start_at, window.end_at)
            self.effects.covered.append(stretch)

    def skip(self, is_unchanged: bool) -> None:
        """There was nothing to do: the pages that were fetched are done with.

        If they are as they were, so is all that could be made of them.
        """
        if self.visits is None:
            return
        if is_unchanged:
            self.effects = Effects(covered=self.effects.covered, spent=self.effects.spent)
        self.effects.extracted += self.visits.done(is_same=is_unchanged)
