"""Events about what runs the work: schedules, signals, hooks, workers, leaders, the database."""

from __future__ import annotations

from typing import ClassVar

from penstock.counting import count
from penstock.journal.event import Event, Reasoned, with_reason

OPERATOR = "an operator"
SCHEDULER = "the scheduler"


class ScheduleVersion(Event, frozen=True):
    """`version` counts the definitions that a schedule had, `definition` is the newest in words."""

    by: ClassVar[str] = SCHEDULER

    schedule: str
    version: int
    definition: str

    def sentence(self) -> str:
        return f"{self.schedule}, version {self.version}: {self.definition}"


class ScheduleDefined(ScheduleVersion, frozen=True):
    """A schedule is new or has a new definition."""

    kind: ClassVar[str] = "schedule.defined"


class ScheduleRemoved(ScheduleVersion, frozen=True):
    """A schedule was taken out of the configuration."""

    kind: ClassVar[str] = "schedule.removed"


class ScheduleSkipped(Event, frozen=True, omit_defaults=True):
    """A tick, or the signal with `signal_id`, has started nothing; `active_run` had not ended."""

    kind: ClassVar[str] = "schedule.skipped"
    by: ClassVar[str] = SCHEDULER

    schedule: str
    reason: str = ""
    active_run: int | None = None
    signal: str = ""
    signal_id: int | None = None

    def sentence(self) -> str:
        who = self.schedule if self.signal_id is None else f"{self.signal} ({self.signal_id})"
        return f"{who}: {not_ended(self.active_run) if self.active_run else self.reason}"


class ScheduleDenied(Event, frozen=True, omit_defaults=True):
    """A tick has started nothing, because the source may not run now."""

    kind: ClassVar[str] = "schedule.denied"
    by: ClassVar[str] = SCHEDULER

    schedule: str
    reason: str = ""

    def sentence(self) -> str:
        return f"{self.schedule}: {self.reason}"


class ScheduleMissed(Event, frozen=True, omit_defaults=True):
    """Ticks have passed while no scheduler was running."""

    kind: ClassVar[str] = "schedule.missed"
    by: ClassVar[str] = SCHEDULER

    schedule: str
    ticks: int
    first_at: float = 0.0
    last_at: float = 0.0

    def sentence(self) -> str:
        return f"{self.schedule}: {count(self.ticks, 'tick')} missed"


class ScheduleReplaced(Event, frozen=True):
    """A tick has cancelled `run`, which had not ended, and starts another."""

    kind: ClassVar[str] = "schedule.replaced"
    by: ClassVar[str] = SCHEDULER

    schedule: str
    run: int

    def sentence(self) -> str:
        return f"{self.schedule}: run {self.run} had not ended"


class SignalRaised(Event, frozen=True):
    """A signal was raised outside of a run."""

    kind: ClassVar[str] = "signal.raised"
    by: ClassVar[str] = "an operator; the caller of the trigger"

    signal: str
    signal_id: int

    def sentence(self) -> str:
        return f"{self.signal} ({self.signal_id})"


class HookEvent(Event, frozen=True, omit_defaults=True):
    """`hook` is the name of the hook, `delivery` the number that `penstock hooks` lists."""

    by: ClassVar[str] = "hooks"

    hook: str
    delivery: int
    attempts: int = 0

    @property
    def _told(self) -> str:
        return f"{self.hook} ({self.delivery}), {count(self.attempts, 'attempt')}"


class HookDelivered(HookEvent, frozen=True, omit_defaults=True):
    """A hook has accepted a delivery."""

    kind: ClassVar[str] = "hook.delivered"

    def sentence(self) -> str:
        return self._told


class HookFailed(HookEvent, frozen=True, omit_defaults=True):
    """A hook has not accepted a delivery, and it is not retried automatically."""

    kind: ClassVar[str] = "hook.failed"

    error: str = ""

    def sentence(self) -> str:
        return f"{self._told}: {self.error}"


class HookRedeliveryRequested(Event, frozen=True, omit_defaults=True):
    """An operator has requested that a delivery is sent again."""

    kind: ClassVar[str] = "hook.redelivery_requested"
    by: ClassVar[str] = OPERATOR

    hook: str
    delivery: int
    reason: str = ""

    def sentence(self) -> str:
        return with_reason(f"{self.hook} ({self.delivery})", self.reason)


class WorkerStarted(Event, frozen=True):
    """A worker has registered."""

    kind: ClassVar[str] = "worker.started"
    by: ClassVar[str] = "the worker"
    is_by_worker: ClassVar[bool] = True


class WorkerStopped(Reasoned, frozen=True, omit_defaults=True):
    """A worker has ended by itself; what it had not finished is queued again."""

    kind: ClassVar[str] = "worker.stopped"
    by: ClassVar[str] = "the worker"
    is_by_worker: ClassVar[bool] = True


class WorkerReaped(Reasoned, frozen=True, omit_defaults=True):
    """A worker has died or lost its lease; its jobs are queued again."""

    kind: ClassVar[str] = "worker.reaped"
    by: ClassVar[str] = "the process that found it, in the name of the worker"
    is_by_worker: ClassVar[bool] = True


class LeaderEvent(Event, frozen=True):
    """`matter` is what there is one leader for, `term` the number of the term."""

    by: ClassVar[str] = "the host that leads"

    matter: str
    term: int

    def sentence(self) -> str:
        return f"{self.matter}, term {self.term}"


class LeaderElected(LeaderEvent, frozen=True):
    """A host has become the leader."""

    kind: ClassVar[str] = "leader.elected"


class LeaderResigned(LeaderEvent, frozen=True):
    """A host has ended its term."""

    kind: ClassVar[str] = "leader.resigned"


class DbMigrated(Event, frozen=True, omit_defaults=True):
    """The schema of the database has one migration more."""

    kind: ClassVar[str] = "db.migrated"
    by: ClassVar[str] = "an operator; Penstock, when it is first run after an upgrade"

    migration: str
    reason: str = ""

    def sentence(self) -> str:
        return with_reason(self.migration, self.reason)


class DbCopied(Event, frozen=True, omit_defaults=True):
    """The project was copied here from another database."""

    kind: ClassVar[str] = "db.copied"
    by: ClassVar[str] = OPERATOR

    origin: str
    reason: str = ""

    def sentence(self) -> str:
        return with_reason(f"from {self.origin}", self.reason)


class DbRestored(Event, frozen=True, omit_defaults=True):
    """The database was put back from a backup."""

    kind: ClassVar[str] = "db.restored"
    by: ClassVar[str] = OPERATOR

    backup: str
    reason: str = ""

    def sentence(self) -> str:
        return with_reason(self.backup, self.reason)


class DbRenamed(Event, frozen=True, omit_defaults=True):
    """The database belongs to a project of another name, or to another environment."""

    kind: ClassVar[str] = "db.renamed"
    by: ClassVar[str] = OPERATOR

    before: str | None
    name: str
    reason: str = ""
    environment_before: str = ""
    environment: str = ""

    def sentence(self) -> str:
        text = f"from {self.before} to {self.name}"
        if self.environment != self.environment_before:
            text += f", environment {self.environment_before or 'unknown'} to {self.environment}"
        return with_reason(text, self.reason)


def not_ended(run_id: int | None) -> str:
    """Why nothing is started beside a run."""
    return f"run {run_id} has not ended yet"


class SqlInterface(Event, frozen=True, omit_defaults=True):
    """`schema` is where the views of the SQL interface are."""

    by: ClassVar[str] = OPERATOR

    schema: str
    reason: str = ""

    def sentence(self) -> str:
        return with_reason(self.schema, self.reason)


class SqlInterfaceInstalled(SqlInterface, frozen=True, omit_defaults=True):
    """The views of the SQL interface were made, or made again."""

    kind: ClassVar[str] = "db.sql_installed"


class SqlInterfaceRemoved(SqlInterface, frozen=True, omit_defaults=True):
    """The views of the SQL interface were dropped."""

    kind: ClassVar[str] = "db.sql_removed"


EVENTS: tuple[type[Event], ...] = (
    ScheduleDefined,
    ScheduleRemoved,
    ScheduleSkipped,
    ScheduleDenied,
    ScheduleMissed,
    ScheduleReplaced,
    SignalRaised,
    HookDelivered,
    HookFailed,
    HookRedeliveryRequested,
    WorkerStarted,
    WorkerStopped,
    WorkerReaped,
    LeaderElected,
    LeaderResigned,
    DbMigrated,
    DbCopied,
    DbRestored,
    DbRenamed,
    SqlInterfaceInstalled,
    SqlInterfaceRemoved,
)
