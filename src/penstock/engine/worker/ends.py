"""The ends of attempts on their way to the store, and who waits until they are written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.engine.tracing.attempts import AttemptTracer
from penstock.engine.worker.budget_use import Spending
from penstock.engine.worker.request_limiter import StoreRequestLimiter
from penstock.engine.worker.turn_size import that_fit
from penstock.jobs.outcome import AttemptLost, Flush, Settlement
from penstock.store.turn.turn import Turn

End = Settlement | Flush


@dataclass(eq=False, slots=True)
class Ends:
    """`news` is set with each end that is added."""

    news: asyncio.Event
    spending: Spending
    limiter: StoreRequestLimiter
    tracer: AttemptTracer | None = None
    _pending: list[End] = field(default_factory=list, init=False)
    _waiters: list[tuple[Flush, asyncio.Future[None]]] = field(default_factory=list, init=False)

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def attempts(self) -> set[tuple[int, int]]:
        return {(end.job_id, end.attempt) for end in self._pending}

    def add(self, end: End) -> None:
        self._pending.append(end)
        self.news.set()

    async def add_and_wait(self, flush: Flush) -> None:
        """Durable when it returns; AttemptLost when the fence is gone."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((flush, written))
        self.add(flush)
        await written

    def take(self) -> list[End]:
        """As many ends as one transaction may hold, in their order; the rest is for the next turn."""
        many = that_fit(self._pending)
        taken, self._pending = self._pending[:many], self._pending[many:]
        if self._pending:
            self.news.set()
        return taken

    def put_back(self, ends: Sequence[End]) -> None:
        self._pending = [*ends, *self._pending]

    def answer(self, turn: Turn, ends: Sequence[End]) -> None:
        """These were written, except those that the turn has postponed."""
        postponed = [end for end in ends if end.job_id in turn.postponed] if turn.postponed else []
        if postponed:
            self.put_back(postponed)
        lost = set(turn.lost)
        if self.tracer is not None:
            written = [end for end in ends if end.job_id not in turn.postponed]
            self.tracer.settled(written, lost)
        if self._waiters:
            self._wake({id(end) for end in ends} - {id(end) for end in postponed}, lost)
        if not self.spending.has_loaded:
            return
        for end in ends:
            run_id, requests = self.spending.settled(end.effects)
            if end.job_id not in lost:
                self.limiter.settled(run_id, requests)

    def _wake(self, written: set[int], lost: set[int]) -> None:
        waiting, self._waiters = self._waiters, []
        for flush, waiter in waiting:
            if id(flush) not in written:
                self._waiters.append((flush, waiter))
            elif waiter.done():
                continue
            elif flush.job_id in lost:
                waiter.set_exception(AttemptLost("this attempt no longer owns the job"))
            else:
                waiter.set_result(None)
