"""Events about one source: steering, health, limits, budgets, promises, checkpoints."""

from __future__ import annotations

from typing import ClassVar

from penstock.counting import count
from penstock.gates.budget import amount_words, used_up, words
from penstock.journal.event import Event, Reasoned, with_reason
from penstock.schemas.drift import FieldDrift
from penstock.settings.budget import Bound

OPERATOR = "an operator"
SLA_BY = "the scheduler; Penstock, where the end of a run decides it"


class SourcePaused(Reasoned, frozen=True, omit_defaults=True):
    """Nothing more of a source starts until it is resumed."""

    kind: ClassVar[str] = "source.paused"
    by: ClassVar[str] = OPERATOR


class SourceResumed(Reasoned, frozen=True, omit_defaults=True):
    """A paused source continues."""

    kind: ClassVar[str] = "source.resumed"
    by: ClassVar[str] = OPERATOR


class SourceHeld(Reasoned, frozen=True, omit_defaults=True):
    """A source is under maintenance: nothing of it starts."""

    kind: ClassVar[str] = "source.held"
    by: ClassVar[str] = OPERATOR


class SourceUnheld(Reasoned, frozen=True, omit_defaults=True):
    """The maintenance of a source is over."""

    kind: ClassVar[str] = "source.unheld"
    by: ClassVar[str] = OPERATOR


class ProjectHeld(Reasoned, frozen=True, omit_defaults=True):
    """The whole project is under maintenance: nothing starts."""

    kind: ClassVar[str] = "project.held"
    by: ClassVar[str] = OPERATOR


class ProjectUnheld(Reasoned, frozen=True, omit_defaults=True):
    """The maintenance of the project is over."""

    kind: ClassVar[str] = "project.unheld"
    by: ClassVar[str] = OPERATOR


class SourceProposed(Reasoned, frozen=True, omit_defaults=True):
    """A source was proposed; nothing of it is fetched before it is approved."""

    kind: ClassVar[str] = "source.proposed"
    by: ClassVar[str] = "an operator; a pipeline that discovered it"

    discovered_by: str = ""

    def sentence(self) -> str:
        found = f"discovered by {self.discovered_by}" if self.discovered_by else ""
        return with_reason(found, self.reason) if found else self.reason


class SourceApproved(Reasoned, frozen=True, omit_defaults=True):
    """A proposed source may have trial runs."""

    kind: ClassVar[str] = "source.approved"
    by: ClassVar[str] = OPERATOR


class SourceActivated(Reasoned, frozen=True, omit_defaults=True):
    """A source is ingested from now on; `trial` is the run that spoke for it."""

    kind: ClassVar[str] = "source.activated"
    by: ClassVar[str] = OPERATOR

    trial: int | None = None

    def sentence(self) -> str:
        return with_reason(f"after run {self.trial}", self.reason) if self.trial else self.reason


class SourceRetired(Reasoned, frozen=True, omit_defaults=True):
    """A source was rejected or retired: its unfinished runs are cancelled, and no more of them start."""

    kind: ClassVar[str] = "source.retired"
    by: ClassVar[str] = OPERATOR

    was: str = ""
    cancelled_runs: int = 0

    def sentence(self) -> str:
        what = f"was {self.was}"
        if self.cancelled_runs:
            what += f", {count(self.cancelled_runs, 'run')} cancelled"
        return with_reason(what, self.reason)


class SourceOwned(Reasoned, frozen=True, omit_defaults=True):
    """A source has an owner, or another one."""

    kind: ClassVar[str] = "source.owner_changed"
    by: ClassVar[str] = OPERATOR

    owner: str = ""

    def sentence(self) -> str:
        return with_reason(self.owner, self.reason)


class SourceChecked(Reasoned, frozen=True, omit_defaults=True):
    """The robots.txt or the terms of a source were checked; `hash` is that of the text that was read."""

    kind: ClassVar[str] = "source.compliance_checked"
    by: ClassVar[str] = OPERATOR

    subject: str = ""
    verdict: str = ""
    url: str = ""
    hash: str = ""

    def sentence(self) -> str:
        where = f" ({self.url})" if self.url else ""
        verdict = self.verdict.replace("_", " ")
        return with_reason(f"{self.subject}: {verdict}{where}", self.reason)


class SourceLegalHold(Reasoned, frozen=True, omit_defaults=True):
    """A source is on legal hold: nothing of it starts, and what ran was stopped at once."""

    kind: ClassVar[str] = "source.legal_hold"
    by: ClassVar[str] = OPERATOR

    stopped_jobs: int = 0

    def sentence(self) -> str:
        stopped = f"{count(self.stopped_jobs, 'running job')} stopped" if self.stopped_jobs else ""
        return with_reason(stopped, self.reason) if stopped else self.reason


class SourceLegallyReleased(Reasoned, frozen=True, omit_defaults=True):
    """A legal hold is over."""

    kind: ClassVar[str] = "source.legal_release"
    by: ClassVar[str] = OPERATOR


class SourceDegraded(Event, frozen=True, omit_defaults=True):
    """Several runs of a source in a row have failed; it runs probes only."""

    kind: ClassVar[str] = "source.degraded"

    failed_runs: int
    last_run: int
    reason: str = ""

    def sentence(self) -> str:
        runs = count(self.failed_runs, "run")
        return with_reason(f"{runs} in a row failed, the last was run {self.last_run}", self.reason)


class SourceRecovered(Reasoned, frozen=True, omit_defaults=True):
    """A degraded source is healthy again, because an operator resumed it or because `good_run` succeeded."""

    kind: ClassVar[str] = "source.recovered"
    by: ClassVar[str] = "Penstock; an operator"

    good_run: int | None = None

    def sentence(self) -> str:
        if self.good_run is not None:
            return f"run {self.good_run} went well"
        return self.reason or "resumed"


class SourceConcurrencyLowered(Event, frozen=True, omit_defaults=True):
    """Penstock runs fewer jobs of a source at once than before."""

    kind: ClassVar[str] = "source.concurrency_lowered"

    jobs: int
    before: int
    cause: str = ""

    def sentence(self) -> str:
        return f"{count(self.jobs, 'job')} at once instead of {self.before}: {self.cause}"


class SourceConcurrencyRestored(Event, frozen=True):
    """A source has its full concurrency again."""

    kind: ClassVar[str] = "source.concurrency_restored"

    jobs: int

    def sentence(self) -> str:
        return f"{count(self.jobs, 'job')} at once"


class CauseEscalated(Event, frozen=True):
    """One cause has quarantined many jobs of a source; it is not retried until somebody releases them."""

    kind: ClassVar[str] = "cause.escalated"

    cause: str
    failures: int

    def sentence(self) -> str:
        jobs = count(self.failures, "job")
        return (
            f"{self.cause}: {jobs} quarantined; not retried until released, or the pipeline changes"
        )


class BreakerEvent(Event, frozen=True, omit_defaults=True):
    """`host` is the host of the breaker; it is empty for the breaker of a source."""

    by: ClassVar[str] = "Penstock; an operator"

    host: str = ""

    @property
    def _who(self) -> str:
        return f"{self.host}: " if self.host else ""


class BreakerOpened(BreakerEvent, frozen=True, omit_defaults=True):
    """A breaker has opened: nothing is sent for a while."""

    kind: ClassVar[str] = "breaker.opened"

    reason: str = ""
    again_in_s: float = 0.0

    def sentence(self) -> str:
        return f"{self._who}{self.reason}; tried again in {self.again_in_s:.0f} s"


class BreakerHalfOpen(BreakerEvent, frozen=True, omit_defaults=True):
    """A breaker sends a few jobs or requests, to test its source or host."""

    kind: ClassVar[str] = "breaker.half-open"

    after_s: float = 0.0

    def sentence(self) -> str:
        return f"{self._who}tried again after {self.after_s:.0f} s"


class BreakerClosed(BreakerEvent, frozen=True, omit_defaults=True):
    """A breaker has closed: requests are sent as usual."""

    kind: ClassVar[str] = "breaker.closed"

    reason: str = ""
    away_s: float = 0.0

    def sentence(self) -> str:
        return f"{self._who}{self.reason}; it was unavailable for {self.away_s:.0f} s"


class BudgetEvent(Event, frozen=True, omit_defaults=True):
    """`scope` is project, source:KEY or run:ID; `bound` is how much of the measure each period has."""

    scope: str
    measure: str
    period: str
    bound: float
    used: float = 0.0

    @property
    def _bound(self) -> Bound:
        return Bound(self.scope, self.measure, self.period, self.bound)

    @property
    def _used(self) -> str:
        return amount_words(self.measure, self.used)


class BudgetThresholdReached(BudgetEvent, frozen=True, omit_defaults=True):
    """A budget has reached a warning threshold: `level` percent are used."""

    kind: ClassVar[str] = "budget.threshold_reached"

    level: int = 0

    def sentence(self) -> str:
        return f"{self.level} % of {words(self._bound)}: {self._used} are used"


class BudgetExhausted(BudgetEvent, frozen=True, omit_defaults=True):
    """A budget is exhausted."""

    kind: ClassVar[str] = "budget.exhausted"

    def sentence(self) -> str:
        return used_up(self._bound)


class BudgetReset(BudgetEvent, frozen=True, omit_defaults=True):
    """A budget's next period has begun; `used` is what was used in the last one."""

    kind: ClassVar[str] = "budget.reset"
    by: ClassVar[str] = "upkeep; Penstock"

    def sentence(self) -> str:
        return f"{words(self._bound)} reset; {self._used} were used"


class Breach(Event, frozen=True, omit_defaults=True):
    """`rule` is the rule of the source, `since` when it was first broken, `breach` what is wrong."""

    by: ClassVar[str] = SLA_BY

    rule: str
    breach: str = ""
    since: float = 0.0

    def sentence(self) -> str:
        return f"{self.rule}: {self.breach}"


class SlaBreached(Breach, frozen=True, omit_defaults=True):
    """A source breaches a service level: freshness or deadline."""

    kind: ClassVar[str] = "sla.breached"


class SlaRestored(Breach, frozen=True, omit_defaults=True):
    """A source meets its service level again."""

    kind: ClassVar[str] = "sla.restored"


class SchemaStale(Breach, frozen=True, omit_defaults=True):
    """The schema of a source was not verified for longer than `schema_freshness` allows."""

    kind: ClassVar[str] = "schema.stale"


class SchemaRestored(Breach, frozen=True, omit_defaults=True):
    """The schema of a source is verified again."""

    kind: ClassVar[str] = "schema.restored"


class SchemaVerified(Event, frozen=True):
    """A step has verified the schema of its source; once for each run."""

    kind: ClassVar[str] = "schema.verified"
    by: ClassVar[str] = "the worker whose step says so"
    is_by_worker: ClassVar[bool] = True


class CheckpointRewound(Event, frozen=True, omit_defaults=True):
    """An operator has moved a checkpoint; cursors are JSON, cut to 80 characters."""

    kind: ClassVar[str] = "checkpoint.rewound"
    by: ClassVar[str] = OPERATOR

    partition: str
    before: str
    cursor: str
    reason: str = ""

    def sentence(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.partition}: {self.before} → {self.cursor}{why}"


class CheckpointRefused(Event, frozen=True):
    """A step tried to move a checkpoint to a position that is not allowed; it did not move."""

    kind: ClassVar[str] = "checkpoint.refused"
    by: ClassVar[str] = "the worker"
    is_by_worker: ClassVar[bool] = True

    partition: str
    cursor: str
    reason: str
    stays: str

    def sentence(self) -> str:
        return f"{self.partition}: not moved to {self.cursor}, {self.reason}; stays at {self.stays}"


class CadenceEvent(Event, frozen=True, omit_defaults=True):
    """The cadence that a source had, and the one that it has or would have."""

    by: ClassVar[str] = "the scheduler; an operator"

    before: str
    cadence: str
    reason: str = ""

    def sentence(self) -> str:
        return f"{self.before} to {self.cadence}: {self.reason}"


class CadenceProposed(CadenceEvent, frozen=True, omit_defaults=True):
    """A source would have another cadence; a person decides."""

    kind: ClassVar[str] = "cadence.proposed"


class CadenceChanged(CadenceEvent, frozen=True, omit_defaults=True):
    """A source has another cadence."""

    kind: ClassVar[str] = "cadence.changed"


class SchemaDrifted(Event, frozen=True, omit_defaults=True):
    """The fields of what a run saved differ from those of the source's run before: `of_run`.

    Only for collections that have a schema. It is raised as a signal, too.
    """

    kind: ClassVar[str] = "schema.drifted"

    collection: str
    changes: tuple[FieldDrift, ...] = ()
    of_run: int | None = None

    def sentence(self) -> str:
        return f"{self.collection}: {', '.join(each.words() for each in self.changes)}"


EVENTS: tuple[type[Event], ...] = (
    SourcePaused,
    SourceResumed,
    SourceHeld,
    SourceUnheld,
    ProjectHeld,
    ProjectUnheld,
    SourceProposed,
    SourceApproved,
    SourceActivated,
    SourceRetired,
    SourceOwned,
    SourceChecked,
    SourceLegalHold,
    SourceLegallyReleased,
    SourceDegraded,
    SourceRecovered,
    SourceConcurrencyLowered,
    SourceConcurrencyRestored,
    CauseEscalated,
    BreakerOpened,
    BreakerHalfOpen,
    BreakerClosed,
    BudgetThresholdReached,
    BudgetExhausted,
    BudgetReset,
    SlaBreached,
    SlaRestored,
    SchemaStale,
    SchemaRestored,
    SchemaVerified,
    SchemaDrifted,
    CheckpointRewound,
    CheckpointRefused,
    CadenceProposed,
    CadenceChanged,
)
