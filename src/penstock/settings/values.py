"""The settings as frozen values: a source, and the whole project."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from penstock.settings.address import SQLITE, name_of
from penstock.settings.alert_rules import RuleChanges
from penstock.settings.alerts import RouteSettings
from penstock.settings.backfill import BackfillSettings
from penstock.settings.budget import BudgetLimit, BudgetSettings, CostSettings, HostLimits
from penstock.settings.cells import MAIN, CellSettings
from penstock.settings.fetch import FetchPolicy
from penstock.settings.headers import Headers
from penstock.settings.hooks import HookSettings, TriggerSettings
from penstock.settings.limits import BreakerSettings, Limits
from penstock.settings.log import LogSettings
from penstock.settings.metrics import MetricsSettings
from penstock.settings.onboarding import OnboardingSettings
from penstock.settings.release import LOCAL, PRODUCTION, PromotionSettings, ReleaseSettings
from penstock.settings.retention import Retention
from penstock.settings.retries import RETRY_NAMES, RetryChoice
from penstock.settings.schedule_values import (
    SCHEDULED_KINDS,
    NearSettings,
    ScheduleKind,
    ScheduleSettings,
    SessionSettings,
    WatchSettings,
)
from penstock.settings.stream import StreamSettings
from penstock.settings.tracing import TracingSettings
from penstock.settings.unset import NEEDED_BY_TRIGGER, Unset, refuse_unset
from penstock.settings.worker import WorkerSettings, available_cores

__all__ = [
    "RETRY_NAMES",
    "SCHEDULED_KINDS",
    "BackfillSettings",
    "BreakerSettings",
    "BudgetLimit",
    "BudgetSettings",
    "CostSettings",
    "FetchPolicy",
    "Headers",
    "HookSettings",
    "HostLimits",
    "Limits",
    "NearSettings",
    "Retention",
    "RetryChoice",
    "RouteSettings",
    "RuleChanges",
    "ScheduleKind",
    "ScheduleSettings",
    "SessionSettings",
    "Settings",
    "SourceSettings",
    "StreamSettings",
    "TracingSettings",
    "TriggerSettings",
    "WatchSettings",
    "WorkerSettings",
    "available_cores",
]


def _json(profile: str | dict[str, Any]) -> str:
    """A profile without its configuration, which is not about which steps there are."""
    if isinstance(profile, dict):
        profile = {name: each for name, each in profile.items() if name != "config"}
    return msgspec.json.encode(profile, order="deterministic").decode()


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One source as configured. `timeout_s` is None when the file doesn't say."""

    key: str
    pipeline: str
    params: dict[str, Any] = field(default_factory=dict, repr=False)
    # Which steps of a registry its pipeline has: the name of a profile, or what the file says of one.
    profile: str | dict[str, Any] = ""
    # The connector that reads it, and what the file says in the connector's own keys.
    connector: str = ""
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    schedules: tuple[ScheduleSettings, ...] = ()
    # Promises about this source: how old its last good run may be, how long one may take, and how long
    # ago a step may have verified what is known of its shape.
    freshness_s: float | None = None
    deadline_s: float | None = None
    schema_freshness_s: float | None = None
    retry: RetryChoice = field(default_factory=RetryChoice)
    useful_for_s: float | None = None
    timeout_s: float | None = None
    priority: int = 5
    weight: float = 1.0
    threshold: float | None = None
    # The JSON Schemas of the project's collections, by name.
    schemas: dict[str, Any] = field(default_factory=dict, repr=False)
    # After so many runs in a row that failed, only probes run, until so many of them went well.
    degrade_after: int = 3
    good_probes: int = 2
    limits: Limits = field(default_factory=Limits)
    breaker: BreakerSettings | None = field(default_factory=BreakerSettings)
    stream: StreamSettings = field(default_factory=StreamSettings)
    backfill: BackfillSettings | None = None
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    cost: CostSettings = field(default_factory=CostSettings)
    fetch: FetchPolicy = field(default_factory=FetchPolicy)
    hooks: tuple[HookSettings, ...] = ()
    alert_rules: RuleChanges = field(default_factory=dict)
    # Its content leaves only where somebody asks for private sources, too.
    private: bool = False
    # What it needs and the environment does not have: it can be looked at, and can't run.
    unset: tuple[Unset, ...] = ()

    @property
    def code(self) -> str:
        """What its steps are loaded by: `module:name`, behind its connector and with its profile."""
        pipeline = f"{self.pipeline}@{_json(self.profile)}" if self.profile else self.pipeline
        return f"{self.connector}|{pipeline}" if self.connector else pipeline

    @property
    def usual_kind(self) -> str:
        """The kind of run that it has where nobody names one."""
        return "incremental" if self.connector else "full"


@dataclass(frozen=True, slots=True)
class CollectionSettings:
    """One collection as configured: the schema that its records must fit, and the file that it is in."""

    schema: dict[str, Any] | bool = True
    file: Path = Path()


@dataclass(frozen=True, slots=True)
class Settings:
    """A whole project. `secrets` holds what came from ${NAME}, for `redact`; `repr` shows none of it.

    `unset` are the variables that the project needs and the environment does not have; those of a source
    are the source's. `warnings` are about all of them, and about `.env`.
    """

    root: Path
    file: Path
    project: str
    store: str = field(default="sqlite:penstock.db", repr=False)
    environment: str | None = None
    # Every cell, `main` first, and the one that this is; nothing in a project in one database.
    cells: dict[str, CellSettings] = field(default_factory=dict, repr=False)
    cell: CellSettings | None = field(default=None, repr=False)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    retention: Retention = field(default_factory=Retention)
    retries: dict[str, RetryChoice] = field(default_factory=dict)
    snapshots: Path | str = field(default=Path("snapshots"), repr=False)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    cost: CostSettings = field(default_factory=CostSettings)
    hosts: dict[str, HostLimits] = field(default_factory=dict)
    hooks: tuple[HookSettings, ...] = ()
    alerts: tuple[RouteSettings, ...] = ()
    alert_rules: RuleChanges = field(default_factory=dict)
    release: ReleaseSettings = field(default_factory=ReleaseSettings)
    promotion: dict[str, PromotionSettings] = field(default_factory=dict)
    timers: str = "penstock"
    trigger: TriggerSettings = field(default_factory=TriggerSettings)
    tracing: TracingSettings = field(default_factory=TracingSettings)
    log: LogSettings = field(default_factory=LogSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    onboarding: OnboardingSettings = field(default_factory=OnboardingSettings)
    collections: dict[str, CollectionSettings] = field(default_factory=dict)
    sources: dict[str, SourceSettings] = field(default_factory=dict)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    unset: tuple[Unset, ...] = ()
    warnings: tuple[str, ...] = ()

    def refuse_unset(self) -> None:
        """Refuse to work where a variable is not set that the whole project needs."""
        refuse_unset(self.needed_to_work())

    def needed_to_work(self) -> tuple[Unset, ...]:
        """Variables that are not set and without which nothing runs."""
        return tuple(each for each in self.unset if each.section not in NEEDED_BY_TRIGGER)

    @property
    def environment_name(self) -> str:
        """The environment that this is; a project without an overlay is `local`."""
        return self.environment or LOCAL

    @property
    def cell_name(self) -> str:
        """The cell that this is; a project in one database is all in `main`."""
        return MAIN if self.cell is None else self.cell.name

    @property
    def is_placed_only(self) -> bool:
        """Whether only sources that were placed here are performed: so it is in every cell but `main`."""
        return self.cell is not None and self.cell.number > 0

    @property
    def is_guarded(self) -> bool:
        """Whether mistakes here hit others: workers run the release only, and destructive acts take more."""
        required = self.release.is_required
        return self.environment == PRODUCTION if required is None else required

    def is_apart(self, environment: str) -> bool:
        """Whether an environment has a database of its own: a guarded one, or one that releases move through.

        Any other is another configuration of the project, to try something or for one host.
        """
        if environment == self.environment_name and self.is_guarded:
            return True
        after = {each.after for each in self.promotion.values()}
        return environment in {PRODUCTION, *self.promotion, *after}

    @property
    def private_sources(self) -> frozenset[str]:
        """The keys of sources whose content leaves only where it is asked for."""
        return frozenset(key for key, source in self.sources.items() if source.private)

    @property
    def is_on_postgres(self) -> bool:
        return not self.store.startswith(SQLITE)

    @property
    def store_name(self) -> str:
        """The store in words for people, without anything secret."""
        return name_of(self.store) if self.is_on_postgres else str(self.store_file)

    @property
    def store_file(self) -> Path:
        """The SQLite file, as an absolute path; a project on Postgres has none."""
        if self.is_on_postgres:
            raise ValueError("a project on Postgres has no file")
        return self.root / self.store.removeprefix(SQLITE)
