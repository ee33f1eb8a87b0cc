"""The jobs that a worker has under way: what they take up, and when their time is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from penstock.clock import Clock
from penstock.engine.worker.deadlines import Deadlines
from penstock.engine.worker.performance import Work
from penstock.engine.worker.stage_config import StageConfig
from penstock.engine.worker.standstill import Standstill
from penstock.jobs.job import Claimed
from penstock.settings import WorkerSettings

# A job and its attempt.
Where = tuple[int, int]


class RunningJob(msgspec.Struct, eq=False):
    """`postpone(job, attempt, by_s)` moves the end of its time, for whoever performs it."""

    work: Work
    config: StageConfig
    postpone: Callable[[int, int, float], None]
    standstill: Standstill | None = None


class RunningJobs(dict[Where, RunningJob]):
    """By (job, attempt). Their deadlines are known outside of the loop, too."""

    def __init__(self, clock: Clock, settings: WorkerSettings, deadlines: Deadlines) -> None:
        super().__init__()
        self._clock = clock
        self._slots = settings.slots
        self._deadlines = deadlines
        self.cpu = settings.cpu
        self.memory_mb = float(settings.memory_mb)

    @property
    def free_slots(self) -> int:
        return max(0, self._slots - len(self))

    @property
    def has_company(self) -> bool:
        """More than one source has attempts under way."""
        sources = (running.work.job.source_id for running in self.values())
        first = next(sources, None)
        return any(source != first for source in sources)

    def begin(
        self, work: Work, config: StageConfig, postpone: Callable[[int, int, float], None]
    ) -> None:
        """Before the step's first line runs: that line may block the loop."""
        where = (work.job.id, work.job.attempt)
        self[where] = RunningJob(work, config, postpone)
        self._deadlines[where] = self._clock.monotonic() + config.timeout_s
        self.cpu -= work.stage.cpu
        self.memory_mb -= work.stage.memory_mb

    def end(self, job: Claimed) -> tuple[RunningJob, float]:
        """The job that has ended, and how long its attempt took."""
        where = (job.id, job.attempt)
        running = self.pop(where)
        began = self._deadlines.pop(where) - running.work.timeout_s
        self.cpu += running.work.stage.cpu
        self.memory_mb += running.work.stage.memory_mb
        return running, max(0.0, self._clock.monotonic() - began)

    @contextmanager
    def standing_still(self, running: RunningJob) -> Iterator[None]:
        """An attempt that waits for what it shares with others does not use up its time."""
        running.standstill = standstill = running.standstill or Standstill()
        self._move_deadline(running, standstill.begin)
        try:
            yield
        finally:
            self._move_deadline(running, standstill.end)

    def _move_deadline(self, running: RunningJob, move: Callable[[float, float], float]) -> None:
        where = (running.work.job.id, running.work.job.attempt)
        if where in self._deadlines:
            before = self._deadlines[where]
            self._deadlines[where] = move(self._clock.monotonic(), before)
            running.postpone(*where, self._deadlines[where] - before)
