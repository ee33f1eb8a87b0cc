"""What a rule sees of one source or of the project, and what it finds.

Times are seconds since 1970, UTC; runs and hours are oldest first. Whoever gathers a history fills in what
there is: a rule whose facts are missing finds nothing.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from penstock.alerts.rules import Severity

Outcome = Literal["completed", "partial", "failed", "cancelled"]


class RunFigures(Struct, frozen=True, kw_only=True):
    """One ended run that read its source: full or incremental, not a replay, probe or backfill."""

    run: int
    started_at: float
    ended_at: float
    outcome: Outcome
    # Jobs that ended, and how many of them failed for good.
    jobs: int = 0
    failed: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    rejected: int = 0
    duplicates: int = 0
    # The mean score of the records; None where none had a score.
    quality: float | None = None

    @property
    def yielded(self) -> int:
        """Records that were accepted, whether or not they were known before."""
        return self.new + self.changed + self.unchanged


class HourFigures(Struct, frozen=True, kw_only=True):
    """One hour of the clock: jobs that were added, that ended, and of those, that failed for good."""

    at: float
    arrived: int = 0
    ended: int = 0
    failed: int = 0


class ScheduleFacts(Struct, frozen=True, kw_only=True):
    """One schedule that is on. `overdue_since` is when the oldest start was due that has not been made."""

    name: str
    interval_s: float
    misses_in_a_row: int = 0
    overdue_since: float | None = None


class BudgetFacts(Struct, frozen=True, kw_only=True):
    """One bound in its present period. `recent_rate_per_s` is what the last hours used; None: unknown."""

    measure: str
    period: str
    amount: float
    used: float
    began_at: float
    resets_at: float
    recent_rate_per_s: float | None = None


class BreakerFacts(Struct, frozen=True, kw_only=True):
    """A breaker that is open, of a source or of a host, and since when without closing in between."""

    name: str
    opened_at: float
    reason: str = ""


class DriftFacts(Struct, frozen=True, kw_only=True):
    """What a run saved into a collection differs from the run before: its fields, and each in words."""

    collection: str
    run: int
    at: float
    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class GivenUpTask(Struct, frozen=True, kw_only=True):
    """A task that an orchestrator tries no more, or a run of it that missed its deadline."""

    engine: str
    at: float
    graph: str = ""
    run: str = ""
    task: str = ""
    is_deadline: bool = False


class SiteFacts(Struct, frozen=True, kw_only=True):
    """What agents know of a site: how sure the mapper was each time, by when, and the notes not solved."""

    domain: str
    confidences: tuple[tuple[float, float], ...] = ()
    notes: int = 0
    noted_at: float = 0.0


class ComplianceFacts(Struct, frozen=True, kw_only=True):
    """What keeps an approved source from being fetched, and since when; or when a check goes stale."""

    problems: tuple[str, ...] = ()
    since: float = 0.0
    stale_at: float | None = None


class History(Struct, frozen=True, kw_only=True):
    """What the rules see of one source.

    `hosts` are those that it fetches from; `failing_hosts` those of them whose breaker is open, and
    `closed_hosts` those that have asked to wait (429, 503). `is_waiting_on_purpose`: somebody paused or
    holds it, so it is not late.
    """

    source: str
    runs: tuple[RunFigures, ...] = ()
    # Of the runs that started before this, `runs` has only a sample.
    whole_from: float = 0.0
    hours: tuple[HourFigures, ...] = ()
    waiting: int = 0
    schedules: tuple[ScheduleFacts, ...] = ()
    budgets: tuple[BudgetFacts, ...] = ()
    breakers: tuple[BreakerFacts, ...] = ()
    drifts: tuple[DriftFacts, ...] = ()
    given_up: tuple[GivenUpTask, ...] = ()
    sites: tuple[SiteFacts, ...] = ()
    # Since when each of its supplier references is new, the oldest first.
    new_references: tuple[float, ...] = ()
    # Only where its compliance counts.
    compliance: ComplianceFacts | None = None
    hosts: tuple[str, ...] = ()
    failing_hosts: tuple[str, ...] = ()
    closed_hosts: tuple[str, ...] = ()
    last_good_at: float | None = None
    freshness_s: float | None = None
    timezone: str = "UTC"
    is_waiting_on_purpose: bool = False
    # When the configuration or the code of its pipeline last changed.
    changed_at: float | None = None


class DeadWorker(Struct, frozen=True, kw_only=True):
    worker: str
    host: str
    died_at: float


class StoreFacts(Struct, frozen=True, kw_only=True):
    """The disk that the database is on. `growth_bytes_per_day` is None where it is not known yet."""

    size_bytes: int
    free_bytes: int
    total_bytes: int
    growth_bytes_per_day: float | None = None


class GivenUp(Struct, frozen=True, kw_only=True):
    """Deliveries to one hook that were given up within the last days."""

    hook: str
    times: tuple[float, ...]
    error: str = ""


class RouteFacts(Struct, frozen=True, kw_only=True):
    """A route whose deliveries fail; `failing_since` is the first failure after its last success."""

    route: str
    failing_since: float
    failed: int = 1
    error: str = ""


class ProjectHistory(Struct, frozen=True, kw_only=True):
    """What the rules see of the project as a whole."""

    alive_workers: int = 0
    dead_workers: tuple[DeadWorker, ...] = ()
    # Since when jobs have been due while no worker was alive.
    unserved_since: float | None = None
    store: StoreFacts | None = None
    given_up: tuple[GivenUp, ...] = ()
    routes: tuple[RouteFacts, ...] = ()


class Number(Struct, frozen=True, kw_only=True):
    """One measured value beside what is usual. `unit` is "", "share", "s", "jobs", "records", "bytes", …"""

    name: str
    value: float
    baseline: float | None = None
    # Median absolute deviation of the baseline, and of how many runs it is made.
    spread: float | None = None
    counted: int | None = None
    limit: float | None = None
    unit: str = ""


CauseKind = Literal[
    "host",
    "site-change",
    "own-change",
    "credentials",
    "workers",
    "database",
    "budget",
    "schedule",
    "delivery",
    "site-schema",
    "decision",
    "unknown",
]


class Cause(Struct, frozen=True, kw_only=True):
    """What probably caused it. Alerts with the same kind and key are one incident."""

    kind: CauseKind
    key: str
    words: str


class Finding(Struct, frozen=True, kw_only=True):
    """A rule's condition holds. `source` is empty for a rule about the project.

    `since` is when the condition began as far as the history shows, `run` the first run that showed it.
    """

    rule: str
    source: str
    severity: Severity
    summary: str
    numbers: tuple[Number, ...]
    cause: Cause
    since: float
    run: int | None = None


class Silence(Struct, frozen=True, kw_only=True):
    """A rule that can't judge yet, and why."""

    rule: str
    source: str
    why: str


class Judgement(Struct, frozen=True):
    """What all rules that are on find in one history, and which of them can't judge it yet."""

    findings: tuple[Finding, ...] = ()
    silent: tuple[Silence, ...] = ()
