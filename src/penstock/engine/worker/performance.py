"""A performance: one attempt at a job, with its way to the one outcome that it ends in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec.structs import replace

from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Outcome, Skipped, Snoozed, Succeeded
from penstock.pipeline.attempt import Attempt, StepRun, StepSource
from penstock.pipeline.error_outcome import outcome_of
from penstock.pipeline.graph import Graph, Stage
from penstock.pipeline.step import DataError

if TYPE_CHECKING:
    from penstock.engine.worker.perform import Performer

Done: TypeAlias = Callable[[Claimed, Outcome], None]


class Work(msgspec.Struct, eq=False):
    """One claimed job with all that performing it needs."""

    job: Claimed
    stage: Stage
    graph: Graph
    source: StepSource
    run: StepRun
    timeout_s: float
    # Moves the end of its time, where somebody else than the loop keeps it.
    postpone: Callable[[float], None] | None = None


class Performance(Attempt):
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


def is_kept(outcome: Outcome) -> bool:
    """Whether what was buffered on the way to this outcome is written."""
    match outcome:
        case Snoozed():
            return True
        case Skipped(_, is_rejection):
            return not is_rejection
    return False
