"""Events about one run, and about the records and rejects that it wrote."""

from __future__ import annotations

from typing import ClassVar

from penstock.counting import count
from penstock.jobs.run import RunState
from penstock.journal.event import Event, Reasoned, with_reason

OPERATOR = "an operator"


class RunDraft(Reasoned, frozen=True, omit_defaults=True):
    """A draft was created, a run that does not start yet: `penstock run --draft`."""

    kind: ClassVar[str] = "run.draft"
    by: ClassVar[str] = OPERATOR


class RunQueued(Reasoned, frozen=True, omit_defaults=True):
    """A new run, or a draft that is started."""

    kind: ClassVar[str] = "run.queued"
    by: ClassVar[str] = "an operator; the scheduler"


class RunStarted(Event, frozen=True):
    """The first job of a run is claimed."""

    kind: ClassVar[str] = "run.started"
    by: ClassVar[str] = "the worker that claimed it"
    is_by_worker: ClassVar[bool] = True

    def sentence(self) -> str:
        return "first job claimed"


class RunJobsAdded(Event, frozen=True):
    """A program has added jobs to a run."""

    kind: ClassVar[str] = "run.jobs_added"
    by: ClassVar[str] = "a program"

    jobs: int

    def sentence(self) -> str:
        return count(self.jobs, "job")


class RunVersionChanged(Event, frozen=True):
    """A run continues with another version of its pipeline."""

    kind: ClassVar[str] = "run.version_changed"
    by: ClassVar[str] = "the worker that performs it"
    is_by_worker: ClassVar[bool] = True

    version: str
    before: str

    def sentence(self) -> str:
        return f"now uses pipeline {self.version}; before: {self.before}"


class RunLimitReached(Event, frozen=True):
    """A stage of a run has reached its limit of jobs; further items are left out."""

    kind: ClassVar[str] = "run.limit_reached"

    stage: str
    most_jobs: int

    def sentence(self) -> str:
        return f"{self.stage} reached its limit of {count(self.most_jobs, 'job')}; further items are left out"


class RunPaused(Reasoned, frozen=True, omit_defaults=True):
    """Nothing more of a run starts until it is resumed."""

    kind: ClassVar[str] = "run.paused"
    by: ClassVar[str] = OPERATOR


class RunResumed(Reasoned, frozen=True, omit_defaults=True):
    """A paused run continues."""

    kind: ClassVar[str] = "run.resumed"
    by: ClassVar[str] = OPERATOR


class RunHandedOver(Reasoned, frozen=True, omit_defaults=True):
    """A run that was prepared for drains is performed by workers from now on."""

    kind: ClassVar[str] = "run.handed_over"
    by: ClassVar[str] = OPERATOR


class RunCompleted(Reasoned, frozen=True, omit_defaults=True):
    """A run has ended, and everything succeeded; or the undo of the run `undo_of` is done."""

    kind: ClassVar[str] = "run.completed"

    undo_of: int | None = None

    def sentence(self) -> str:
        return self.reason if self.undo_of is None else f"the undo of run {self.undo_of} is done"


class RunPartial(Reasoned, frozen=True, omit_defaults=True):
    """A run has ended, and some of its jobs have failed."""

    kind: ClassVar[str] = "run.partial"


class RunFailed(Reasoned, frozen=True, omit_defaults=True):
    """A run has ended and failed."""

    kind: ClassVar[str] = "run.failed"


class RunCancelled(Reasoned, frozen=True, omit_defaults=True):
    """A run was cancelled before it was done."""

    kind: ClassVar[str] = "run.cancelled"
    by: ClassVar[str] = (
        "an operator; Penstock, where all its jobs were cancelled; "
        "the scheduler, where `overlap: replace` is set"
    )


class RunCountsMismatch(Event, frozen=True, omit_defaults=True):
    """The counts of an ended run do not add up; `pages` and `candidates` are the differences."""

    kind: ClassVar[str] = "run.counts_mismatch"

    pages: int = 0
    candidates: int = 0

    def sentence(self) -> str:
        pages, candidates = count(self.pages, "page"), count(self.candidates, "candidate")
        return f"not accounted for: {pages}, {candidates}"


class RunReopened(Reasoned, frozen=True, omit_defaults=True):
    """An ended run is open again, because some of its jobs are retried."""

    kind: ClassVar[str] = "run.reopened"
    by: ClassVar[str] = "an operator; upkeep, where a budget had stopped it"


class RunContinued(Event, frozen=True):
    """A new run takes over the jobs that `of_run` has left."""

    kind: ClassVar[str] = "run.continued"

    jobs: int
    of_run: int

    def sentence(self) -> str:
        return f"{count(self.jobs, 'job')} left of run {self.of_run}"


class RunCommitStarted(Reasoned, frozen=True, omit_defaults=True):
    """An operator has started to commit a replay."""

    kind: ClassVar[str] = "run.commit_started"
    by: ClassVar[str] = OPERATOR


class RunCommitted(Event, frozen=True, omit_defaults=True):
    """What a replay has staged is written. `conflicts` and `newer` records were not touched."""

    kind: ClassVar[str] = "run.committed"
    by: ClassVar[str] = OPERATOR

    added: int = 0
    changed: int = 0
    removed: int = 0
    # Changed by others since, and known from later pages.
    conflicts: int = 0
    newer: int = 0
    reason: str = ""

    def sentence(self) -> str:
        text = f"{self.added} added, {self.changed} changed, {self.removed} removed"
        if self.conflicts or self.newer:
            text += (
                f"; left alone: {self.conflicts} changed by others, {self.newer} from later pages"
            )
        return with_reason(text, self.reason)


class RunDropped(Reasoned, frozen=True, omit_defaults=True):
    """What a replay has staged is discarded."""

    kind: ClassVar[str] = "run.dropped"
    by: ClassVar[str] = "an operator; upkeep, if it was not committed in time"


class RunUndoStarted(Event, frozen=True, omit_defaults=True):
    """An operator has started to undo the run `undo_of`."""

    kind: ClassVar[str] = "run.undo_started"
    by: ClassVar[str] = OPERATOR

    undo_of: int
    reason: str = ""

    def sentence(self) -> str:
        return with_reason(f"of run {self.undo_of}", self.reason)


class RunUndone(Event, frozen=True, omit_defaults=True):
    """Records are as they were before a run; `changed_later` ones were not touched."""

    kind: ClassVar[str] = "run.undone"
    by: ClassVar[str] = OPERATOR

    undo_run: int
    changed: int = 0
    added: int = 0
    removed: int = 0
    changed_later: int = 0
    reason: str = ""

    def sentence(self) -> str:
        text = f"{self.changed} brought back, {self.added} returned, {self.removed} removed"
        text += f" by run {self.undo_run}"
        if self.changed_later:
            text += f"; {self.changed_later} changed by later runs are as they were"
        return with_reason(text, self.reason)


class RejectsRedriven(Event, frozen=True):
    """This run processes rejected items again."""

    kind: ClassVar[str] = "rejects.redriven"
    by: ClassVar[str] = OPERATOR

    rejects: int
    items: int

    def sentence(self) -> str:
        return f"{count(self.rejects, 'reject')}, {count(self.items, 'item')}"


class RecordOverwritten(Event, frozen=True):
    """A run has replaced records that another source had written last."""

    kind: ClassVar[str] = "record.overwritten"

    records: int
    collection: str
    written_by: str

    def sentence(self) -> str:
        return f"{self.records} of {self.collection} were last written by {self.written_by}"


class RecordEdited(Event, frozen=True, omit_defaults=True):
    """A person has changed `fields` of a record; `record` is its number, `version` the new version."""

    kind: ClassVar[str] = "record.edited"
    by: ClassVar[str] = OPERATOR

    record: int
    collection: str
    version: int
    fields: tuple[str, ...] = ()
    reason: str = ""

    def sentence(self) -> str:
        told = (
            f"{', '.join(self.fields)} of {self.collection} {self.record}, version {self.version}"
        )
        return with_reason(told, self.reason)


class QualityZeroYield(Event, frozen=True):
    """A run yielded nothing, although earlier runs yielded something."""

    kind: ClassVar[str] = "quality.zero_yield"

    yielded_before: int
    runs_before: int

    def sentence(self) -> str:
        runs = count(self.runs_before, "run")
        return f"it yielded nothing; {self.yielded_before} of {runs} before it yielded"


class QualityAnomaly(Event, frozen=True, omit_defaults=True):
    """A run has yielded less than half of the usual amount."""

    kind: ClassVar[str] = "quality.anomaly"

    brought: int
    usual: float
    runs_before: int = 0

    def sentence(self) -> str:
        return f"it brought {count(self.brought, 'record')}, where {self.usual:,.0f} are usual"


# How a run begins and ends, by the state that it enters.
BEGINS: dict[RunState, type[Reasoned]] = {RunState.DRAFT: RunDraft, RunState.QUEUED: RunQueued}
ENDS: dict[RunState, type[Reasoned]] = {
    RunState.COMPLETED: RunCompleted,
    RunState.PARTIAL: RunPartial,
    RunState.FAILED: RunFailed,
    RunState.CANCELLED: RunCancelled,
}

EVENTS: tuple[type[Event], ...] = (
    *BEGINS.values(),
    RunStarted,
    RunJobsAdded,
    RunVersionChanged,
    RunLimitReached,
    RunPaused,
    RunResumed,
    RunHandedOver,
    *ENDS.values(),
    RunCountsMismatch,
    RunReopened,
    RunContinued,
    RunCommitStarted,
    RunCommitted,
    RunDropped,
    RunUndoStarted,
    RunUndone,
    RejectsRedriven,
    RecordOverwritten,
    RecordEdited,
    QualityZeroYield,
    QualityAnomaly,
)
