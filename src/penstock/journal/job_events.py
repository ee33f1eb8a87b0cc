"""Events about one job: its attempts, what people do with it, and its entry in quarantine."""

from __future__ import annotations

from typing import ClassVar, Literal

from penstock.counting import count
from penstock.journal.event import Event, Reasoned, with_reason

WORKER = "the worker"
OPERATOR = "an operator"


class JobStarted(Event, frozen=True):
    """An attempt of a job has started."""

    kind: ClassVar[str] = "job.started"
    by: ClassVar[str] = WORKER
    is_by_worker: ClassVar[bool] = True


class JobSucceeded(Event, frozen=True):
    """An attempt has succeeded, and its effects are written."""

    kind: ClassVar[str] = "job.succeeded"
    by: ClassVar[str] = WORKER
    is_by_worker: ClassVar[bool] = True


class AttemptEnd(Event, frozen=True, omit_defaults=True):
    """`reason` is the kind of failure or why there was nothing to do, `host` the host that was asked."""

    by: ClassVar[str] = WORKER

    reason: str = ""
    error: str = ""
    host: str = ""

    @property
    def why(self) -> str:
        return with_reason(self.reason, self.error)

    def sentence(self) -> str:
        return self.why


class AttemptPutOff(AttemptEnd, frozen=True, omit_defaults=True):
    """`again_in_s` is the delay before the next attempt; `gate` is what turned the attempt away."""

    is_by_worker: ClassVar[bool] = True

    again_in_s: float = 0.0
    gate: str = ""

    def sentence(self) -> str:
        return f"{self.why} (again in {self.again_in_s:.1f} s)"


class JobRetryScheduled(AttemptPutOff, frozen=True, omit_defaults=True):
    """An attempt has failed; a retry is scheduled after a delay."""

    kind: ClassVar[str] = "job.retry_scheduled"


class JobThrottled(AttemptPutOff, frozen=True, omit_defaults=True):
    """The provider asked to wait; the job is tried again after a delay, and no attempt is lost."""

    kind: ClassVar[str] = "job.throttled"


class JobSnoozed(AttemptPutOff, frozen=True, omit_defaults=True):
    """A step or a gate has postponed the job; no attempt is lost."""

    kind: ClassVar[str] = "job.snoozed"


class JobSkipped(AttemptEnd, frozen=True, omit_defaults=True):
    """There was nothing to do for the job, or `done_in_run` had done it already."""

    kind: ClassVar[str] = "job.skipped"
    by: ClassVar[str] = "the worker; Penstock, where an earlier run had done it"

    done_in_run: int | None = None

    def sentence(self) -> str:
        return self.why if self.done_in_run is None else f"done in run {self.done_in_run}"


class JobQuarantined(AttemptEnd, frozen=True, omit_defaults=True):
    """The job is no longer retried."""

    kind: ClassVar[str] = "job.quarantined"


class JobReleased(AttemptEnd, frozen=True, omit_defaults=True):
    """The job was taken back from its worker and is queued again."""

    kind: ClassVar[str] = "job.released"
    is_by_worker: ClassVar[bool] = True


class JobStopped(AttemptEnd, frozen=True, omit_defaults=True):
    """A running attempt was stopped; its job is queued again, and waits for what stopped it to end."""

    kind: ClassVar[str] = "job.stopped"
    by: ClassVar[str] = "an operator"


class JobCancelled(AttemptEnd, frozen=True, omit_defaults=True):
    """The job is cancelled; `with_run` is the run that was cancelled as a whole."""

    kind: ClassVar[str] = "job.cancelled"
    by: ClassVar[str] = "an operator; the worker; upkeep, for the jobs of a cancelled run"

    with_run: int | None = None

    def sentence(self) -> str:
        return self.why if self.with_run is None else f"run {self.with_run} was cancelled"


class JobDue(Event, frozen=True, omit_defaults=True):
    """A waiting job is queued again, because it is due or because the hours of `host` have changed."""

    kind: ClassVar[str] = "job.due"
    by: ClassVar[str] = "the clock; the scheduler, where the hours of its host have changed"

    host: str = ""

    def sentence(self) -> str:
        return f"the hours of {self.host} have changed" if self.host else "due"


class JobRequeued(Reasoned, frozen=True, omit_defaults=True):
    """A job that had stopped is queued again, with all its tries."""

    kind: ClassVar[str] = "job.requeued"
    by: ClassVar[str] = "an operator; upkeep, where a budget had stopped it"


class JobHeld(Reasoned, frozen=True, omit_defaults=True):
    """The job does not start until it is unheld."""

    kind: ClassVar[str] = "job.held"
    by: ClassVar[str] = OPERATOR


class JobUnheld(Reasoned, frozen=True, omit_defaults=True):
    """The job is back where it was before it was held."""

    kind: ClassVar[str] = "job.unheld"
    by: ClassVar[str] = OPERATOR


class JobNoted(Event, frozen=True):
    """A step has written a note: `ctx.note(text)`."""

    kind: ClassVar[str] = "job.noted"
    by: ClassVar[str] = WORKER
    is_by_worker: ClassVar[bool] = True

    text: str

    def sentence(self) -> str:
        return self.text


class QuarantineReleased(Reasoned, frozen=True, omit_defaults=True):
    """An entry of quarantine is queued again, with all its tries."""

    kind: ClassVar[str] = "quarantine.released"
    by: ClassVar[str] = OPERATOR


class QuarantineDiscarded(Reasoned, frozen=True, omit_defaults=True):
    """An entry of quarantine is closed for good."""

    kind: ClassVar[str] = "quarantine.discarded"
    by: ClassVar[str] = OPERATOR


class QuarantineExpired(Event, frozen=True):
    """An entry of quarantine is closed because it is older than retention keeps it."""

    kind: ClassVar[str] = "quarantine.expired"
    by: ClassVar[str] = "upkeep"

    keep_days: float

    def sentence(self) -> str:
        return f"in quarantine for more than {count(self.keep_days, 'day')}"


class QuarantineClosed(Event, frozen=True, omit_defaults=True):
    """An entry of quarantine is closed: `by_job` of `by_run` processed its page, or its `replay` ended."""

    kind: ClassVar[str] = "quarantine.closed"

    by_job: int | None = None
    by_run: int | None = None
    # What became of that job; `extracted`: it was another job of the page that the entry came from.
    outcome: Literal["", "failed", "extracted", "skipped", "succeeded"] = ""
    replay: int | None = None
    replay_was: Literal["", "committed", "dropped"] = ""

    def sentence(self) -> str:
        if self.replay is not None:
            return f"replay {self.replay} was {self.replay_was}"
        return f"job {self.by_job} of run {self.by_run} {_ANSWERS.get(self.outcome, self.outcome)}"


_ANSWERS = {
    "failed": "failed for the same page and counts both",
    "extracted": "extracted its page again",
    "skipped": "was skipped",
}


class QuarantineNoted(Event, frozen=True):
    """An operator has added a note to an entry of quarantine."""

    kind: ClassVar[str] = "quarantine.noted"
    by: ClassVar[str] = OPERATOR

    text: str

    def sentence(self) -> str:
        return self.text


EVENTS: tuple[type[Event], ...] = (
    JobStarted,
    JobSucceeded,
    JobSkipped,
    JobRetryScheduled,
    JobThrottled,
    JobSnoozed,
    JobQuarantined,
    JobReleased,
    JobStopped,
    JobCancelled,
    JobDue,
    JobRequeued,
    JobHeld,
    JobUnheld,
    JobNoted,
    QuarantineReleased,
    QuarantineDiscarded,
    QuarantineExpired,
    QuarantineClosed,
    QuarantineNoted,
)
