"""The exchange: one turn with the store, and what is said and asked beside it, in the store's thread."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from penstock.clock import Clock
from penstock.engine.worker.attempts import Attempts
from penstock.engine.worker.budget_use import Spending
from penstock.engine.worker.calls import Calls
from penstock.engine.worker.ends import End
from penstock.engine.worker.hosts import HostWatch
from penstock.engine.worker.known_runs import KnownRuns
from penstock.engine.worker.step_output import StepOutput
from penstock.engine.worker.store_backoff import StoreBackoff
from penstock.engine.worker.turn_times import TurnTimes
from penstock.errors import StoreError
from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.gates.loaded import Loaded
from penstock.store.snapshots import Kept
from penstock.store.store import Store
from penstock.store.turn.turn import Turn

# How often hosts that are watched are looked up, and how often what steps print is written: each time is a
# transaction of its own.
HOSTS_EVERY_S = 1.0
LOG_EVERY_S = 0.5


@dataclass(eq=False, slots=True, kw_only=True)
class Exchange:
    worker: str
    store: Store
    calls: Calls
    clock: Clock
    backoff: StoreBackoff
    limits: Mapping[int, LaneLimits]
    attempts: Attempts
    runs: KnownRuns
    hosts: HostWatch
    spending: Spending
    times: TurnTimes
    loaded: Loaded | None = None
    output: StepOutput | None = None
    _is_announced: bool = field(default=False, init=False)
    _hosts_at: float = field(default=float("-inf"), init=False)
    _log_at: float = field(default=float("-inf"), init=False)

    async def turn(self, ends: Sequence[End], kept: Sequence[Kept], capacity: Capacity) -> Turn:
        return await self.calls(lambda: self._turn(ends, kept, capacity))

    async def leave(self) -> None:
        """Write what is left to say, and sign off."""
        self._log_at = float("-inf")
        await self.calls(self._write_logs)
        await self.calls(self._write_times)
        await self.calls(lambda: self.store.workers.sign_off(self.worker))

    def _turn(self, ends: Sequence[End], kept: Sequence[Kept], capacity: Capacity) -> Turn:
        self.backoff.mend()
        self._announce()
        while self.attempts.stopped:
            (run_id, stage), reason = self.attempts.stopped.popitem()
            self.store.jobs.set_aside(run_id, stage, reason, self.worker)
        began = self.clock.monotonic()
        turn = self.store.turn(self.worker, ends, capacity, self.limits, kept)
        self.backoff.regain()
        if self.times.note(began, has_ends=bool(ends)):
            self._write_times()
        self._write_logs()
        self.runs.learn({job.run_id: job.source_id for job in turn.claimed})
        if turn.claimed:
            self._learn()
        return turn

    def _announce(self) -> None:
        if self.loaded is not None and not self._is_announced:
            self.store.workers.announce(self.worker, self.loaded, os.getppid())
            self._is_announced = True

    def _learn(self) -> None:
        """What attempts that begin now must know of hosts and budgets."""
        if self.clock.monotonic() - self._hosts_at >= HOSTS_EVERY_S:
            self._hosts_at = self.clock.monotonic()
            self.hosts.learn(self.store.hosts.watched())
        if self.spending.has_budgets:
            self.spending.learn(self.store.budgets.exhausted())

    def _write_logs(self) -> None:
        """What steps said, now and then, and not before what they did."""
        output, now = self.output, self.clock.monotonic()
        if output is None or not output.has_lines or now < self._log_at:
            return
        self._log_at = now + LOG_EVERY_S
        lines = output.take()
        try:
            self.store.logs.add(lines)
        except StoreError:
            output.put_back(lines)  # the next turn meets the same trouble and deals with it

    def _write_times(self) -> None:
        """How long turns took: it must not be a reason for a turn to fail or to be taken again."""
        amounts = self.times.amounts()
        if amounts:
            with suppress(StoreError):
                self.store.rollups.measure(amounts)
                self.times.written()
