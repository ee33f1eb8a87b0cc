"""The settings as frozen values; every default of penstock.yaml stands here and nowhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from penstock.settings.address import SQLITE, name_of
from penstock.settings.secrets import MASK
from penstock.settings.unset import NEEDED_BY_TRIGGER, Unset, refuse_unset
from penstock.settings.windows import Window
from penstock.version import __version__

RETRY_NAMES = ("fast", "conservative", "provider-safe")
SCHEDULED_KINDS = ("full", "incremental", "probe")
ScheduleKind = Literal["manual", "every", "cron", "cadence", "session", "watch", "signal", "after"]
DAY_S = 86400.0


def available_cores() -> int:
    """The cores that this process may use, which in a container are fewer than the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Headers(dict[str, str]):
    """Request headers; their values are often credentials, so `repr` masks them."""

    def __repr__(self) -> str:
        return repr(dict.fromkeys(self, MASK))


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What one worker may use at once, and how long it may take to finish when told to stop.

    `count` is how many such workers a host has.
    """

    count: int = 1
    slots: int = 1024
    threads: int = 32
    processes: int = 2
    cpu: float = field(default_factory=available_cores)
    memory_mb: int = 1024
    grace_s: float = 10.0
    # Variables of the environment that process children get to see, as names or patterns (`AWS_*`).
    pass_env: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetryChoice:
    """A retry class by its name, and what is to be different from it; None is as the class has it."""

    name: str | None = None
    tries: int | None = None
    base_s: float | None = None
    cap_s: float | None = None
    unknown_tries: int | None = None


@dataclass(frozen=True, slots=True)
class Retention:
    """How long what is finished is kept."""

    jobs_s: float = 30 * DAY_S
    events_s: float = 90 * DAY_S
    versions_s: float = 365 * DAY_S
    snapshots_s: float = 90 * DAY_S
    quarantine_s: float = 90 * DAY_S
    rejects_s: float = 90 * DAY_S
    staged_s: float = 30 * DAY_S
    logs_s: float = 14 * DAY_S
    runs_s: float = 365 * DAY_S


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """A moment of every session of an exchange: its open or close, and so much later (or earlier)."""

    calendar: str
    at: Literal["open", "close"] = "open"
    offset_s: float = 0.0


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """Files that start a run when they land: those that match, once nothing has changed for a while."""

    pattern: str
    debounce_s: float = 2.0
    rescan_s: float = 60.0


@dataclass(frozen=True, slots=True)
class NearSettings:
    """So long before and after a moment that a step has announced, look this often."""

    window_s: float
    every_s: float


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """When a source runs by itself: one policy, and what holds whatever the policy is.

    A cron expression is checked and its aliases are spelled out. A source may have several of these; each
    has a name of its own, and the kind of the runs that it starts.
    """

    kind: ScheduleKind = "manual"
    every_s: float | None = None
    cron: str | None = None
    timezone: str = "UTC"
    # The kind of the runs that it starts.
    run_kind: str = SCHEDULED_KINDS[0]
    name: str = "main"
    jitter_s: float = 0.0
    # high, medium, low, probe, or auto; `mode` says whether auto moves the source or only proposes to.
    cadence: str | None = None
    mode: Literal["apply", "suggest"] = "apply"
    # auto: so many runs in a row that say the same move it, between these classes.
    runs: int = 3
    slowest: str = "low"
    fastest: str = "high"
    session: SessionSettings | None = None
    watch: WatchSettings | None = None
    signals: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    near: NearSettings | None = None
    # When it may start at all: inside these windows, outside of those, by the schedule's time zone.
    windows: tuple[Window, ...] = ()
    blackouts: tuple[Window, ...] = ()
    during: Literal["", "in-session", "out-of-session"] = ""
    calendar: str | None = None
    # Ticks that were missed: one run for all of them, none, or one for each (so many a minute).
    missed: Literal["once", "skip", "all"] = "once"
    catch_up_per_min: float = 10.0
    # A tick that comes while the run before it has not ended.
    overlap: Literal["skip", "queue", "replace"] = "skip"


@dataclass(frozen=True, slots=True)
class Limits:
    """`concurrency` bounds run and page jobs at once, `candidates` candidate jobs, `rate_per_s` requests.

    `adaptive` lowers the concurrency for a while when the source bears less. Outside its `windows`, by
    the clock of `timezone`, nothing starts that would touch the source.
    """

    concurrency: int = 4
    candidates: int = 64
    rate_per_s: float | None = None
    adaptive: bool = True
    windows: tuple[Window, ...] = ()
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """A source is left alone for `open_for_s`, longer each time up to `longest_s`, when of what ended in
    the last `window_s`, if that was `at_least` so much, this `ratio` failed."""

    ratio: float = 0.5
    at_least: int = 10
    window_s: float = 60.0
    open_for_s: float = 30.0
    longest_s: float = 1800.0


@dataclass(frozen=True, slots=True)
class BudgetLimit:
    """No more than this much of one measure in each run, day or month."""

    measure: str
    amount: float
    period: str


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """What may be used; days and months begin at midnight in the zone (a source's: else the project's)."""

    bounds: tuple[BudgetLimit, ...] = ()
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class CostSettings:
    """What one request costs; None where the file doesn't say."""

    request: float | None = None


@dataclass(frozen=True, slots=True)
class HostLimits:
    """What all sources on all hosts together may do to one host of the network.

    Outside its `windows`, by the clock of `timezone`, it is asked nothing. `breaker` is None where only a
    person opens it.
    """

    concurrency: int | None = None
    rate_per_s: float | None = None
    windows: tuple[Window, ...] = ()
    timezone: str = "UTC"
    breaker: BreakerSettings | None = BreakerSettings()


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """What a source's requests may do, where they may go, and what they carry there.

    `headers` are for the origins of the source's own `addresses`; `headers_for` are for others. `hosts` are
    the hosts that it may reach beside its own; None where the configuration does not say.
    """

    allow_private: bool | tuple[str, ...] = False
    robots: bool = True
    user_agent: str = field(default=f"penstock/{__version__}", repr=False)
    timeout_s: float = 20.0
    max_bytes: int = 16_000_000
    max_redirects: int = 5
    missing: Literal["fail", "skip"] = "fail"
    headers: dict[str, str] = field(default_factory=Headers)
    headers_for: dict[str, dict[str, str]] = field(default_factory=dict)
    hosts: tuple[str, ...] | None = None
    addresses: tuple[str, ...] = field(default=(), repr=False)
    connections: int = 4
    rate_per_s: float | None = None
    has_breaker: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "headers", Headers(self.headers))
        bound = {origin: Headers(headers) for origin, headers in self.headers_for.items()}
        object.__setattr__(self, "headers_for", bound)


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """When a stream was away for longer than `gap_s`, what it missed is filled by a backfill."""

    gap_s: float = 60.0


@dataclass(frozen=True, slots=True)
class BackfillSettings:
    """How a source's past is cut into units, and how much of its concurrency they may have.

    Windows of whole days are cut at midnights in the zone.
    """

    window_s: float = DAY_S
    partitions: tuple[str, ...] = ("default",)
    share: float = 0.25
    calls_per_unit: float = 1.0
    calendar: str = "always"
    holidays: tuple[str, ...] = ()
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class HookSettings:
    """Who is told when a run ends: an address, or a command of the host that leads."""

    name: str
    on: tuple[str, ...] = ("completed", "partial", "failed", "cancelled")
    url: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)
    headers: dict[str, str] = field(default_factory=Headers)
    allow_private: bool | tuple[str, ...] = False
    command: tuple[str, ...] = field(default=(), repr=False)
    env: dict[str, str] = field(default_factory=Headers)
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "headers", Headers(self.headers))
        object.__setattr__(self, "env", Headers(self.env))


@dataclass(frozen=True, slots=True)
class TriggerSettings:
    """Who may raise signals over HTTP: whoever has the token, at one of these hosts beside our own."""

    token: str | None = field(default=None, repr=False)
    hosts: tuple[str, ...] = ()
    max_bytes: int = 256_000


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One source as configured. `timeout_s` is None when the file doesn't say."""

    key: str
    pipeline: str
    params: dict[str, Any] = field(default_factory=dict, repr=False)
    schedules: tuple[ScheduleSettings, ...] = ()
    # Promises about this source: how old its last good run may be, how long one may take, and how long
    # ago a step may have verified what is known of its shape.
    freshness_s: float | None = None
    deadline_s: float | None = None
    schema_freshness_s: float | None = None
    retry: RetryChoice = RetryChoice()
    useful_for_s: float | None = None
    timeout_s: float | None = None
    priority: int = 5
    weight: float = 1.0
    threshold: float | None = None
    # After so many runs in a row that failed, only probes run, until so many of them went well.
    degrade_after: int = 3
    good_probes: int = 2
    limits: Limits = Limits()
    breaker: BreakerSettings | None = BreakerSettings()
    stream: StreamSettings = StreamSettings()
    backfill: BackfillSettings | None = None
    budget: BudgetSettings = BudgetSettings()
    cost: CostSettings = CostSettings()
    fetch: FetchPolicy = field(default_factory=FetchPolicy)
    hooks: tuple[HookSettings, ...] = ()
    # What it needs and the environment does not have: it can be looked at, and can't run.
    unset: tuple[Unset, ...] = ()


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
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    retention: Retention = Retention()
    retries: dict[str, RetryChoice] = field(default_factory=dict)
    snapshots: Path | str = field(default=Path("snapshots"), repr=False)
    budget: BudgetSettings = BudgetSettings()
    cost: CostSettings = CostSettings()
    hosts: dict[str, HostLimits] = field(default_factory=dict)
    hooks: tuple[HookSettings, ...] = ()
    trigger: TriggerSettings = TriggerSettings()
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
