"""Attempts in a thread, or right where they are started: plain steps of a page or a candidate."""

from __future__ import annotations

from contextlib import suppress

from penstock.engine.worker.performance import Performance, is_kept
from penstock.engine.worker.step_output import performing
from penstock.jobs.outcome import Cancelled, Outcome, Succeeded
from penstock.pipeline.error_outcome import timed_out
from penstock.pipeline.probe_limits import Enough
from penstock.pipeline.walk import item_of, walk_plain


class InThread(Performance):
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
        if is_kept(self.outcome) and self.effects:
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
