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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from penstock.clock import SyncedClock
from penstock.engine.worker.attempts import Attempts
from penstock.engine.worker.ends import Ends
from penstock.engine.worker.exchange import Exchange
from penstock.engine.worker.lease import Lease
from penstock.engine.worker.request_limiter import StoreRequestLimiter
from penstock.engine.worker.review import Review
from penstock.engine.worker.running_jobs import RunningJobs
from penstock.engine.worker.snapshot_writer import SnapshotWriter
from penstock.engine.worker.store_backoff import StoreBackoff
from penstock.errors import StoreError
from penstock.gates.capacity import Capacity, DrainScope
from penstock.http.pace import rest_beside
from penstock.store.rows import Admits
from penstock.store.turn.turn import Turn

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


@dataclass(eq=False, slots=True, kw_only=True)
class Worker:
    """One worker: a name, a lease, and as many attempts at once as it has slots."""

    name: str
    clock: SyncedClock
    lease: Lease
    # Set when there is a reason for a turn.
    news: asyncio.Event
    exchange: Exchange
    ends: Ends
    running: RunningJobs
    attempts: Attempts
    review: Review
    snapshot_writer: SnapshotWriter
    limiter: StoreRequestLimiter
    backoff: StoreBackoff
    grace_s: float
    admits: Admits = "all"
    # What it is for, if it is a drain's.
    scope: DrainScope | None = None
    # Whether another process has written something since this was last asked; None if that can't be seen.
    has_changed: Callable[[], bool] | None = None
    _is_draining: bool = field(default=False, init=False)
    _is_stopping: bool = field(default=False, init=False)
    _is_buried: bool = field(default=False, init=False)
    _is_in_doubt: bool = field(default=False, init=False)
    _reviewed_at: float = field(default=0.0, init=False)
    _claim_at: float = field(default=0.0, init=False)
    _rest_until: float = field(default=0.0, init=False)

    # Steering, from outside.

    def trust_until(self, monotonic: float) -> None:
        """The lease holds until then, by the monotonic clock; without word, side effects stop."""
        self.lease.trusted_until = monotonic

    def drain(self) -> None:
        """Claim no more and finish what runs; asked twice, stop now and release it."""
        self._is_stopping = self._is_draining
        self._is_draining = True
        self.news.set()

    def wake(self) -> None:
        """Look for work now, not only when something has ended or is due."""
        self.news.set()

    @property
    def must_be_recycled(self) -> bool:
        """Too many threads are stuck in steps that timed out; only a new process frees them."""
        return self.attempts.lost_threads > MAX_LOST_THREADS

    # The loop.

    async def work(self, until: Callable[[], bool] = lambda: False) -> bool:
        """Work until drained, buried or `until` says so; True if the worker left in good order."""
        grace_ends: float | None = None
        rest_beside(lambda: self.running.has_company)
        while not self._is_buried:
            turn = await self._turn()
            if turn is not None:
                self.attempts.begin(turn.claimed, turn.bounds)
            if self.must_be_recycled:
                self._is_draining = True
            if self._is_draining:
                self.attempts.release_waiting()
                self.attempts.release_streams()
            if self._is_draining and not self._has_business():
                break
            if self._is_draining and grace_ends is None:
                grace_ends = self.clock.monotonic() + self.grace_s
            if grace_ends is not None and (
                self._is_stopping or self.clock.monotonic() >= grace_ends
            ):
                self.attempts.release_all()
            if until() and not self._has_business():
                break
            await self._wait(turn, grace_ends)
            await self._review()
        return await self._leave()

    def _has_business(self) -> bool:
        return bool(self.running or len(self.ends) or self.snapshot_writer.has_rows)

    async def _turn(self) -> Turn | None:
        """One exchange with the store; None when it could not be had and will be tried again."""
        self.news.clear()
        if not await self.lease.holds():
            self._is_buried = True
            return None
        ends = self.ends.take()
        kept, capacity = self.snapshot_writer.take(), self._capacity()
        began = self.clock.monotonic()
        try:
            turn = await self.exchange.turn(ends, kept, capacity)
        except StoreError as error:
            self._is_in_doubt = True
            delay_s = self.backoff.wait_s(error)
            if self.backoff.is_full:
                self.attempts.release_waiting()
        else:
            self._note(turn, began)
            self.ends.answer(turn, ends)
            self.review.close_hosts(turn.closed_hosts)
            return turn
        self.ends.put_back(ends)
        self.snapshot_writer.put_back(kept)
        await asyncio.sleep(delay_s)
        self.news.set()
        return None

    def _note(self, turn: Turn, began: float) -> None:
        """What a turn says of the store and of this worker."""
        self.backoff.is_over()
        ended = self.clock.monotonic()
        self._rest_until = ended + min(ended - began, REST_S)
        self.clock.sync(turn.now)
        self._claim_at = max(self._claim_at, self.clock.monotonic() + turn.rest_s)
        self._is_buried = self._is_buried or turn.is_buried
        if self._is_in_doubt:
            # What was claimed unheard is not to wait for long.
            self._reviewed_at = float("-inf")

    def _capacity(self) -> Capacity:
        is_full = self.backoff.is_full or self.snapshot_writer.is_late
        if self._is_draining or is_full or self.clock.monotonic() < self._claim_at:
            return Capacity(0, admits=self.admits)
        running = self.running
        ahead = self.attempts.ahead
        room = (max(0, running.free_slots - len(ahead)), running.cpu, running.memory_mb)
        return Capacity(*room, self.admits, self.exchange.loaded, self.scope, ahead.wanted())

    async def _wait(self, turn: Turn | None, grace_ends: float | None) -> None:
        """Until something finished, something is due, or another process changed something."""
        deadline = self.clock.monotonic() + POLL_S
        if turn is not None and turn.next_due_at is not None and not self._is_draining:
            # What is due and was not woken is in somebody's hands: it is looked at again, not without pause.
            due_in_s = max(turn.next_due_at - turn.now, WATCH_S)
            deadline = min(deadline, self.clock.monotonic() + due_in_s)
        if grace_ends is not None:
            deadline = min(deadline, max(grace_ends, self.clock.monotonic() + WATCH_S))
        step_s = WATCH_S if self.has_changed is not None else POLL_S
        while not self.news.is_set():
            left_s = deadline - self.clock.monotonic()
            if left_s <= 0 or self._somebody_wrote():
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), min(step_s, left_s))
        await self._rest()

    async def _rest(self) -> None:
        """Let more attempts end and share the next turn: each turn costs the same, however few it is for."""
        while len(self.ends) < (len(self.running) + len(self.attempts.ahead)) / 2:
            left_s = self._rest_until - self.clock.monotonic()
            if left_s <= 0:
                return
            await asyncio.sleep(min(left_s, REST_LOOK_S))

    def _somebody_wrote(self) -> bool:
        try:
            return self.has_changed is not None and self.has_changed()
        except StoreError:
            return True  # the turn that follows meets the same trouble and deals with it

    async def _review(self) -> None:
        """Stop attempts whose job was taken away meanwhile, and all requests to hosts that others closed."""
        now = self.clock.monotonic()
        is_idle = not self.running and not self._is_in_doubt
        if is_idle or now - self._reviewed_at < REVIEW_S:
            return
        self._reviewed_at = now
        if self._is_in_doubt:
            self.attempts.ahead.start_over()
        else:
            self.attempts.release_waiting(only_late=True)
        with suppress(StoreError):  # the next turn meets the same trouble and deals with it
            await self.review.look(now)
            if self._is_in_doubt:
                await self.review.release_unheard()
                self._is_in_doubt = False

    async def _leave(self) -> bool:
        if self._is_buried:
            self.attempts.release_all()
        else:
            with suppress(StoreError):  # the supervisor takes back what could not be handed back
                await self.limiter.settle()
                await self.exchange.leave()
        return not self._is_buried
