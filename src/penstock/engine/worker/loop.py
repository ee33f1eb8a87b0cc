"""The worker: claim, perform, settle, in one loop.

    while working:
        outcomes = whatever finished since the last turn
        claimed  = store.turn(worker, outcomes, free capacity)   # one transaction
        start each claimed job
        wait for: something finished | a wake-up | the next due time

While one turn is on the disk, the next outcomes pile up and share the next one. Payloads that were
fetched meanwhile are in a segment on the disk by then; the rows that refer to them travel with it.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec import structs

from penstock.clock import SyncedClock
from penstock.engine.worker.calls import Answer, Calls
from penstock.engine.worker.deadlines import Deadlines
from penstock.engine.worker.fetching import Errand, Fetching
from penstock.engine.worker.perform import Performer, Work
from penstock.engine.worker.redaction import redact_notes, redacted
from penstock.engine.worker.replaying import Replaying, another_version
from penstock.engine.worker.request_limiter import StoreRequestLimiter
from penstock.engine.worker.snapshot_writer import SnapshotWriter
from penstock.engine.worker.spending import Spending
from penstock.engine.worker.stage_config import SourceConfig, StageConfig, stage_config_of
from penstock.engine.worker.standstill import Standstill
from penstock.engine.worker.step_output import StepOutput
from penstock.engine.worker.store_backoff import StoreBackoff
from penstock.engine.worker.streams import Streams
from penstock.engine.worker.turn_size import that_fit
from penstock.errors import StoreError, StoreUnreachable
from penstock.gates.lane import LaneLimits
from penstock.jobs.effects import Effects
from penstock.jobs.job import Claimed, JobState, Unit
from penstock.jobs.loaded import Loaded
from penstock.jobs.outcome import (
    AttemptLost,
    Failed,
    Flush,
    Outcome,
    Settlement,
)
from penstock.jobs.probe import without_retries
from penstock.jobs.repeats import Sayings
from penstock.jobs.replay import REPLAY_STAGE
from penstock.jobs.retry import DEFAULT_RETRY, RETRY_CLASSES, RetryClass, settle
from penstock.jobs.run import RunFacts, RunOptions
from penstock.jobs.run_policy import FULL, RunPolicy, policy_of
from penstock.pipeline.attempt import RunView, SourceView
from penstock.pipeline.graph import Graph, Stage
from penstock.pipeline.verdict import outcome_of
from penstock.pipeline.version import version_of, with_params
from penstock.settings import WorkerSettings
from penstock.sources.fetch import Fetcher
from penstock.sources.pace import rest_beside
from penstock.sources.response import Response
from penstock.store.backfills import start_linked_backfill
from penstock.store.rows import Admits
from penstock.store.store import Capacity, Kept, Store, Turn

# How often an idle worker looks whether another process has committed something, how often it takes
# a turn whatever it saw, and how often it looks for attempts that were taken from it.
WATCH_S = 0.01
POLL_S = 1.0
REVIEW_S = 1.0
# A worker in full swing rests for as long as its last turn took, but no longer than this, or until half as
# many attempts have ended as are under way; and it looks so often.
REST_S = 0.01
REST_LOOK_S = 0.002
MAX_LOST_THREADS = 8
# How long a stream that was paused may take to come to a commit, a yield or a fetch.
STREAM_HALT_S = 3.0
SECOND_LOOK_S = 0.1
KNOWN_RUNS = 10_000
# How often what steps print is written: each time is a transaction of its own.
LOG_EVERY_S = 0.5


class Worker:
    """One worker: a name, a lease, and as many attempts at once as it has slots."""

    def __init__(
        self,
        name: str,
        *,
        store: Store,
        calls: Calls,
        snapshot_writer: SnapshotWriter,
        limiter: StoreRequestLimiter,
        fetcher: Fetcher,
        performer: Callable[[Worker], Performer],
        sources: Mapping[int, SourceConfig],
        limits: Mapping[int, LaneLimits],
        settings: WorkerSettings,
        secrets: frozenset[str],
        clock: SyncedClock,
        rng: random.Random,
        has_changed: Callable[[], bool] | None,
        tell: Callable[[str], None],
        admits: Admits = "all",
        deadlines: Deadlines | None = None,
        loaded: Loaded | None = None,
        output: StepOutput | None = None,
    ) -> None:
        self.name = name
        self._store = store
        self._calls = calls
        self._snapshot_writer = snapshot_writer
        self._fetcher = fetcher
        self._sources = sources
        self._limits = limits
        self._settings = settings
        self._secrets = secrets
        self._clock = clock
        self._rng = rng
        self._has_changed = has_changed
        self._admits = admits
        self._loaded = loaded
        self._output = output
        self._is_announced = False
        self._limiter = limiter
        self._spending = Spending(limiter.rules)
        self._stopped: dict[tuple[int, str], str] = {}
        self._backoff = snapshot_writer.backoff = limiter.backoff = StoreBackoff(
            store, clock, tell, rng
        )
        self._replaying = Replaying(store, self._ask, snapshot_writer)
        self._fetching = Fetching(
            store, snapshot_writer, fetcher, self._spending, self._replaying, self._ask, self.flush
        )
        self._performer = performer(self)
        self._streams = Streams(name, store, self._ask, self._fill_gap)
        self._openings: set[asyncio.Task[None] | None] = set()
        self._news = asyncio.Event()
        snapshot_writer.on_kept = self._news.set
        self._works: dict[tuple[int, int], tuple[Work, StageConfig]] = {}
        # Known outside of the loop, too, before the step's first line runs: that line may block it.
        self._deadlines = deadlines if deadlines is not None else Deadlines()
        self._standstills: dict[tuple[int, int], Standstill] = {}
        self._stage_configs: dict[tuple[int, str], StageConfig | None] = {}
        self._runs: dict[int, RunView] = {}
        self._ends: list[Settlement | Flush] = []
        self._flushes: list[tuple[Flush, asyncio.Future[None]]] = []
        self._flush_counts: dict[tuple[int, int], int] = {}
        self._renewed: set[tuple[int, int]] = set()
        self._sayings: dict[tuple[int, int], Sayings] = {}
        self._cpu = settings.cpu
        self._memory_mb = float(settings.memory_mb)
        self._is_draining = False
        self._is_stopping = False
        self._is_buried = False
        self._trusted_until = float("inf")
        self._reviewed_at = 0.0
        self._looked_at = float("-inf")
        self._log_at = float("-inf")
        self._claim_at = 0.0
        self._rest_until = 0.0
        self._is_in_doubt = False
        # Since when running jobs are asked to stop because something was paused.
        self._halted_at: dict[int, float] = {}

    # Steering, from outside.

    def trust_until(self, monotonic: float) -> None:
        """The lease holds until then, by the monotonic clock; without word, side effects stop."""
        self._trusted_until = monotonic

    def drain(self) -> None:
        """Claim no more and finish what runs; asked twice, stop now and release it."""
        self._is_stopping = self._is_draining
        self._is_draining = True
        self._news.set()

    def wake(self) -> None:
        """Look for work now, not only when something has ended or is due."""
        self._news.set()

    @property
    def must_be_recycled(self) -> bool:
        """Too many threads are stuck in steps that timed out; only a new process frees them."""
        return self._performer.lost_threads > MAX_LOST_THREADS

    # The loop.

    async def work(self, until: Callable[[], bool] = lambda: False) -> bool:
        """Work until drained, buried or `until` says so; True if the worker left in good order."""
        grace_ends: float | None = None
        rest_beside(self._has_company)
        while not self._is_buried:
            turn = await self._turn()
            if turn is not None:
                self._begin(turn.claimed)
            if self.must_be_recycled:
                self._is_draining = True
            if self._is_draining:
                self._stop_streams()  # they would not end by themselves
            if self._is_draining and not self._has_business():
                break
            if self._is_draining and grace_ends is None:
                grace_ends = self._clock.monotonic() + self._settings.grace_s
            if grace_ends is not None and (
                self._is_stopping or self._clock.monotonic() >= grace_ends
            ):
                self._release_all()
            if until() and not self._has_business():
                break
            await self._wait(turn, grace_ends)
            await self._review()
        return await self._leave()

    def _has_business(self) -> bool:
        return bool(self._works or self._ends or self._snapshot_writer.has_rows)

    def _has_company(self) -> bool:
        """More than one source has attempts under way."""
        sources = (work.job.source_id for work, _ in self._works.values())
        first = next(sources, None)
        return any(source != first for source in sources)

    async def _turn(self) -> Turn | None:
        """One exchange with the store; None when it could not be had and will be tried again."""
        self._news.clear()
        if not await self._is_trusted():
            self._is_buried = True
            return None
        ends = self._next_ends()
        kept, capacity = self._snapshot_writer.take(), self._capacity()
        began = self._clock.monotonic()
        try:
            turn = await self._calls(lambda: self._exchange(ends, kept, capacity))
        except StoreError as error:
            self._is_in_doubt = True
            delay_s = self._backoff.wait_s(error)
        else:
            self._backoff.is_over()
            ended = self._clock.monotonic()
            self._rest_until = ended + min(ended - began, REST_S)
            self._clock.sync(turn.now)
            self._claim_at = max(self._claim_at, self._clock.monotonic() + turn.rest_s)
            if self._is_in_doubt:
                self._reviewed_at = float(
                    "-inf"
                )  # what was claimed unheard is not to wait for long
            self._answer(turn, ends)
            return turn
        self._ends = [*ends, *self._ends]
        self._snapshot_writer.put_back(kept)
        await asyncio.sleep(delay_s)
        self._news.set()
        return None

    def _next_ends(self) -> list[Settlement | Flush]:
        """As many ends as one transaction may hold, in their order; the rest is for the next turn."""
        many = that_fit(self._ends)
        ends, self._ends = self._ends[:many], self._ends[many:]
        if self._ends:
            self._news.set()
        return ends

    async def _is_trusted(self) -> bool:
        """Whether the lease still holds, as far as this process knows.

        A step that blocked the loop kept the supervisor's beats from being read, not from being sent:
        they are given a moment to arrive before the worker takes itself for dead.
        """
        if self._clock.monotonic() < self._trusted_until:
            return True
        await asyncio.sleep(SECOND_LOOK_S)
        return self._clock.monotonic() < self._trusted_until

    def _exchange(
        self, ends: list[Settlement | Flush], kept: list[Kept], capacity: Capacity
    ) -> Turn:
        """In the store's thread: one transaction."""
        self._backoff.mend()
        if self._loaded is not None and not self._is_announced:
            self._store.announce(self.name, self._loaded, os.getppid())
            self._is_announced = True
        while self._stopped:
            (run_id, stage), reason = self._stopped.popitem()
            self._store.set_aside(run_id, stage, reason, self.name)
        turn = self._store.turn(self.name, ends, capacity, self._limits, kept)
        self._backoff.regain()
        self._write_logs()
        self._learn({job.run_id: job.source_id for job in turn.claimed})
        if turn.claimed and self._clock.monotonic() - self._looked_at >= REVIEW_S:
            self._looked_at = self._clock.monotonic()
            self._limiter.hosts.learn(self._store.watched_hosts())
        if turn.claimed and self._spending.has_budgets:
            self._spending.learn(self._store.exhausted_budgets())
        return turn

    def _write_logs(self) -> None:
        """In the store's thread: what steps said, now and then, and not before what they did."""
        output, now = self._output, self._clock.monotonic()
        if output is None or not output.has_lines or now < self._log_at:
            return
        self._log_at = now + LOG_EVERY_S
        lines = output.take()
        try:
            self._store.add_log_lines(lines)
        except StoreError:
            output.put_back(lines)  # the next turn meets the same trouble and deals with it

    def _learn(self, source_of: dict[int, int]) -> None:
        """What the steps of these runs must know of them; it never changes."""
        run_ids = source_of.keys()
        unknown = sorted(run_ids - self._runs.keys())
        if unknown:
            if len(self._runs) > KNOWN_RUNS:
                self._runs = {run_id: self._runs[run_id] for run_id in run_ids & self._runs.keys()}
            for facts in self._store.run_facts(unknown).values():
                self._runs[facts.id] = RunView(
                    facts.id,
                    facts.kind,
                    facts.options,
                    facts.of_run_id,
                    self._stamped(facts, source_of[facts.id]),
                )

    def _stamped(self, facts: RunFacts, source_id: int) -> str:
        """The version that a run is performed with here; the run says so from now on.

        What a replay has staged is of the version that it was asked for, or it is not performed.
        """
        own = self._loaded.sources.get(source_id) if self._loaded is not None else None
        known = facts.pipeline_version
        if own is None or policy_of(facts.kind, facts.options).pins_version:
            return known
        version = self._version(source_id, facts.options) or own.version
        if version != known:
            self._store.restamp(facts.id, known, version, self.name)
        return version

    def _version(self, source_id: int, options: RunOptions) -> str:
        """Of a run that has params of its own."""
        config = self._sources.get(source_id)
        if not options.params or config is None:
            return ""
        return version_of(config.graph, with_params(config.settings, options.params))

    def _capacity(self) -> Capacity:
        if self._is_draining or self._backoff.is_full or self._snapshot_writer.is_late:
            return Capacity(0, admits=self._admits)
        if self._clock.monotonic() < self._claim_at:
            return Capacity(0, admits=self._admits)
        free = self._settings.slots - len(self._works)
        return Capacity(max(0, free), self._cpu, self._memory_mb, self._admits, self._loaded)

    def _answer(self, turn: Turn, ends: list[Settlement | Flush]) -> None:
        postponed = [end for end in ends if end.job_id in turn.postponed]
        self._ends = [*postponed, *self._ends]
        lost = set(turn.lost)
        written = {id(end) for end in ends} - {id(end) for end in postponed}
        waiting, self._flushes = self._flushes, []
        for flush, waiter in waiting:
            if id(flush) not in written:
                self._flushes.append((flush, waiter))
            elif waiter.done():
                continue
            elif flush.job_id in lost:
                waiter.set_exception(AttemptLost("the job was taken from this attempt"))
            else:
                waiter.set_result(None)
        for end in ends:
            run_id, requests = self._spending.settled(end.effects)
            if end.job_id not in lost:
                self._limiter.settled(run_id, requests)
        self._is_buried = self._is_buried or turn.is_buried
        self._close_hosts(turn.closed_hosts)

    def _close_hosts(self, closed_hosts: Mapping[str, float]) -> None:
        for host, closed_until in closed_hosts.items():
            self._fetcher.close_host(host, closed_until)

    async def _wait(self, turn: Turn | None, grace_ends: float | None) -> None:
        """Until something finished, something is due, or another process changed something."""
        deadline = self._clock.monotonic() + POLL_S
        if turn is not None and turn.next_due_at is not None and not self._is_draining:
            # What is due and was not woken is in somebody's hands: it is looked at again, not without pause.
            due_in_s = max(turn.next_due_at - turn.now, WATCH_S)
            deadline = min(deadline, self._clock.monotonic() + due_in_s)
        if grace_ends is not None:
            deadline = min(deadline, max(grace_ends, self._clock.monotonic() + WATCH_S))
        step_s = WATCH_S if self._has_changed is not None else POLL_S
        while not self._news.is_set():
            left_s = deadline - self._clock.monotonic()
            if left_s <= 0 or self._somebody_wrote():
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), min(step_s, left_s))
        await self._rest()

    async def _rest(self) -> None:
        """Let more attempts end and share the next turn: each turn costs the same, however few it is for."""
        while len(self._ends) < len(self._works) / 2:
            left_s = self._rest_until - self._clock.monotonic()
            if left_s <= 0:
                return
            await asyncio.sleep(min(left_s, REST_LOOK_S))

    def _somebody_wrote(self) -> bool:
        try:
            return self._has_changed is not None and self._has_changed()
        except StoreError:
            return True  # the turn that follows meets the same trouble and deals with it

    # Jobs.

    def _begin(self, claimed: list[Claimed]) -> None:
        for job in claimed:
            config = self._stage_config(job)
            if config is None:
                self._refuse(job)
                continue
            run = self._runs[job.run_id]
            if run.policy.pins_version and run.pipeline_version != config.source.version:
                self._end(job, another_version(), config.retry, config.stage.unit)
                continue
            if self._spending.has_budgets and self._set_aside(job, config, run):
                continue
            source = _with_params(config, run.options)
            work = Work(job, config.stage, config.graph, source, run, config.timeout_s)
            self._works[job.id, job.attempt] = (work, config)
            self._deadlines[job.id, job.attempt] = self._clock.monotonic() + config.timeout_s
            self._cpu -= config.stage.cpu
            self._memory_mb -= config.stage.memory_mb
            if config.stage.is_stream:
                self._openings.add(asyncio.ensure_future(self._open_stream(work)))
            else:
                self._performer.start(work, self._done)

    def _set_aside(self, job: Claimed, config: StageConfig, run: RunView) -> bool:
        """End a job that needs what a budget has no more of, before it begins; no try is spent."""
        stage = config.stage
        stops = self._spending.stops(job, config.source.key, stage, run.kind)
        if stops:
            failed = Failed(stops, is_permanent=True, kind="budget")
            self._end(job, failed, config.retry, stage.unit)
            self._stopped[job.run_id, job.stage] = stops
        return bool(stops)

    async def _open_stream(self, work: Work) -> None:
        """What a stream missed is seen to before it goes on."""
        try:
            gap_s = self._sources[work.job.source_id].settings.stream.gap_s
            await self._streams.open(work.job, gap_s)
        except (StoreError, AttemptLost) as error:
            self._done(work.job, outcome_of(error))
        else:
            self._performer.start(work, self._done)
        finally:
            self._openings.discard(asyncio.current_task())

    def _stop_streams(self) -> None:
        for (job_id, _), (work, _) in list(self._works.items()):
            if work.stage.is_stream:
                self._performer.cancel(job_id, "released by a drain")

    def _stage_config(self, job: Claimed) -> StageConfig | None:
        where = (job.source_id, job.stage)
        if where not in self._stage_configs:
            config = self._sources.get(job.source_id)
            stage = self._stage(config.graph, job.stage) if config else None
            self._stage_configs[where] = (
                stage_config_of(config, stage) if config and stage else None
            )
        return self._stage_configs[where]

    def _stage(self, graph: Graph, name: str) -> Stage | None:
        return self._replaying.stage(graph) if name == REPLAY_STAGE else graph.stage(name)

    def _refuse(self, job: Claimed) -> None:
        error = f"the project has no stage {job.stage!r} for this source any more"
        failed = Failed(error, is_permanent=True, kind="data", cause=error)
        self._end(job, failed, RETRY_CLASSES[DEFAULT_RETRY])

    def _done(self, job: Claimed, outcome: Outcome) -> None:
        work, config = self._works.pop((job.id, job.attempt))
        if self._output is not None:
            self._output.end(job)
        began = self._deadlines.pop((job.id, job.attempt)) - work.timeout_s
        self._flush_counts.pop((job.id, job.attempt), None)
        self._standstills.pop((job.id, job.attempt), None)
        if (job.id, job.attempt) in self._renewed:
            # What it brought has made up for what failed before, in the store too.
            self._renewed.remove((job.id, job.attempt))
            job = structs.replace(job, tries=0, deaths=0)
        self._streams.close(job)
        self._cpu += work.stage.cpu
        self._memory_mb += work.stage.memory_mb
        took_s = max(0.0, self._clock.monotonic() - began)
        outcome = self._snapshot_writer.excuse(job, outcome)
        # What is past does not get stale.
        useful_for_s = None if work.run.policy.is_background else config.useful_for_s
        self._end(job, outcome, config.retry, work.stage.unit, took_s, useful_for_s)

    def _end(
        self,
        job: Claimed,
        outcome: Outcome,
        retry: RetryClass,
        unit: Unit | None = None,
        took_s: float = 0.0,
        useful_for_s: float | None = None,
    ) -> None:
        outcome = redacted(outcome, self._secrets)
        end = settle(job, outcome, retry, self._rng, unit, took_s, useful_for_s)
        if job.attempt > 1 and end.effects:
            self._key(job, end.effects)
        self._sayings.pop((job.id, job.attempt), None)
        policy = self._policy(job)
        if policy.retries:
            policy.committed(end.effects)
        else:
            config = self._stage_config(job)
            end = without_retries(end, config.timeout_s if config else took_s)
        if job.source_id in self._sources:
            key = self._sources[job.source_id].settings.key
            self._spending.load(job, key, end.effects)
        self._ends.append(end)
        self._news.set()

    def _policy(self, job: Claimed) -> RunPolicy:
        run = self._runs.get(job.run_id)
        return run.policy if run is not None else FULL

    async def _review(self) -> None:
        """Stop attempts whose job was taken away meanwhile, and all requests to hosts that others closed."""
        now = self._clock.monotonic()
        is_idle = not self._works and not self._is_in_doubt
        if is_idle or now - self._reviewed_at < REVIEW_S:
            return
        self._reviewed_at = now
        with suppress(StoreError):  # the next turn meets the same trouble and deals with it
            ids = [job_id for job_id, _ in self._works]
            owned = await self._calls(lambda: self._store.still_owned(self.name, ids))
            for job_id in set(ids) - owned:
                self._performer.cancel(job_id, "the job was taken from this attempt")
            await self._review_pauses(now)
            self._close_hosts(await self._calls(self._store.closed_hosts))
            self._limiter.hosts.learn(await self._calls(self._store.watched_hosts))
            if self._is_in_doubt:
                self._put_back(await self._calls(lambda: self._store.jobs_of(self.name)))

    async def _review_pauses(self, now: float) -> None:
        """Stop long attempts whose run, source or project was paused or held meanwhile.

        They stop at their next pause point. A stream may never come to one, so it is stopped anyway.
        """
        long = {job_id: work.stage for (job_id, _), (work, _) in self._works.items()}
        ids = [job_id for job_id, stage in long.items() if stage.unit == "run"]
        halted = await self._calls(lambda: self._store.halted(self.name, ids)) if ids else {}
        self._performer.halt(halted)
        self._halted_at = {job_id: self._halted_at.get(job_id, now) for job_id in halted}
        for job_id, since in self._halted_at.items():
            if job_id in long and long[job_id].is_stream and now - since >= STREAM_HALT_S:
                self._performer.cancel(job_id, halted[job_id])

    def _put_back(self, owned: set[tuple[int, int]]) -> None:
        """A turn that failed may have been written all the same: release what it claimed unheard."""
        ending = {(end.job_id, end.attempt) for end in self._ends}
        for job_id, attempt in sorted(owned - set(self._works) - ending):
            reason = "claimed in a turn that was not answered"
            self._ends.append(Settlement(job_id, attempt, JobState.QUEUED, reason=reason))
            self._news.set()
        self._is_in_doubt = False

    def _release_all(self) -> None:
        for job_id, _ in list(self._works):
            self._performer.cancel(job_id, "released by a drain")

    async def _leave(self) -> bool:
        if self._is_buried:
            self._release_all()
        else:
            with suppress(StoreError):  # the supervisor takes back what could not be handed back
                await self._limiter.settle()
                self._log_at = float("-inf")
                await self._calls(self._write_logs)
                await self._calls(lambda: self._store.sign_off(self.name))
        return not self._is_buried

    # What steps may ask for.

    async def fetch(self, job: Claimed, url: str, **options: Any) -> Response:
        """Fetch a page for an attempt: stored before it is handed over."""
        if not await self._is_trusted():
            raise AttemptLost("the worker's lease has ended")
        where = (job.id, job.attempt)
        work, config = self._works[where]
        idle = partial(self._standing_still, where)
        return await self._fetching.fetch(Errand(job, work.run, config, url, idle), options)

    @contextmanager
    def _standing_still(self, where: tuple[int, int]) -> Iterator[None]:
        """An attempt that waits for what it shares with others does not use up its time."""
        standstill = self._standstills.setdefault(where, Standstill())
        self._move_deadline(where, standstill.begin)
        try:
            yield
        finally:
            self._move_deadline(where, standstill.end)

    def _move_deadline(self, where: tuple[int, int], move: Callable[[float, float], float]) -> None:
        if where in self._deadlines:
            before = self._deadlines[where]
            self._deadlines[where] = move(self._clock.monotonic(), before)
            self._performer.postpone(*where, self._deadlines[where] - before)

    async def flush(self, job: Claimed, effects: Effects) -> None:
        """Make a part of a long attempt's effects durable; AttemptLost when the fence is gone."""
        effects = self._policy(job).committed(effects)
        redact_notes(effects, self._secrets)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        where = (job.id, job.attempt)
        self._flush_counts[where] = number = self._flush_counts.get(where, 0) + 1
        self._key(job, effects)
        is_long = where in self._works and self._works[where][0].stage.is_long
        flush = Flush(job.id, job.attempt, effects, number, is_long and bool(effects))
        if flush.is_progress:
            self._renewed.add(where)
        self._spending.load(job, self._sources[job.source_id].settings.key, effects)
        self._flushes.append((flush, written))
        self._ends.append(flush)
        self._news.set()
        await written

    def _key(self, job: Claimed, effects: Effects) -> None:
        """Let what is said again be known. A stream goes on where it was, so what it says is new."""
        config = self._stage_config(job)
        if config is not None and not config.stage.is_stream:
            self._sayings.setdefault((job.id, job.attempt), Sayings()).key(effects)

    async def records(
        self, collection: str, after_key: str | None, limit: int
    ) -> list[dict[str, Any]]:
        rows = await self._ask(lambda: self._store.records(collection, after_key or "", limit))
        return [{"key": row.key, "data": row.data, "score": row.score} for row in rows]

    async def backlog(self, job: Claimed) -> tuple[int, int]:
        return await self._ask(lambda: self._store.backlog(job.run_id, job.stage))

    async def covered(
        self, job: Claimed, partitions: Sequence[str], start_at: float, end_at: float
    ) -> list[tuple[str, float, float]]:
        where = (job.source_id, partitions, start_at, end_at)
        found = await self._ask(lambda: self._store.covered(*where))
        return [(row.partition, row.start_at, row.end_at) for row in found]

    async def cursors(self, job: Claimed) -> dict[str, Any]:
        if self._policy(job).moves_checkpoints:
            return await self._ask(lambda: self._store.checkpoints(job.source_id))
        return await self._ask(lambda: self._store.run_cursors(job.run_id))

    def _fill_gap(self, job: Claimed, start_at: float, end_at: float) -> None:
        """In the store's thread: have what was missed fetched, by a run that is linked to the stream's."""
        config = self._sources[job.source_id]
        start_linked_backfill(
            self._store,
            job.source_id,
            config.settings,
            config.graph,
            start_at=start_at,
            end_at=end_at,
            linked_to=job.run_id,
            reason=f"the stream was away for {end_at - start_at:.0f} s",
        )

    async def _ask(self, verb: Callable[[], Answer]) -> Answer:
        """What a step wants to know. A database that is away is waited for: it is not the step's fault."""
        while True:
            try:
                return await self._calls(verb)
            except StoreUnreachable as error:
                await asyncio.sleep(self._backoff.wait_s(error))
            if not await self._is_trusted():
                raise AttemptLost("the worker's lease has ended")


def _with_params(config: StageConfig, options: RunOptions) -> SourceView:
    """The source as the steps of this run see it."""
    if not options.params:
        return config.source
    params = {**config.source.params, **options.params}
    version = version_of(config.graph, with_params(config.settings, options.params))
    return replace(config.source, params=params, version=version)
