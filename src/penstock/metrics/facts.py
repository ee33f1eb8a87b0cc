"""What metrics are made of: sums since the beginning, and how things stand now. All of it is read by keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

# (source, measure, label, sum); without a source, of all together.
Total = tuple[str | None, str, str, float]


class SourceFact(msgspec.Struct, frozen=True, array_like=True):
    """A source, and when its last good run ended."""

    id: int
    key: str
    is_paused: bool
    waiting: int
    good_at: float | None


class StageFact(msgspec.Struct, frozen=True, array_like=True):
    """What is open of one stage of a source's active runs. `oldest_at` is since when its first job waits."""

    source: str
    stage: str
    queued: int
    running: int
    waiting: int
    held: int
    oldest_at: float | None


class BudgetFact(msgspec.Struct, frozen=True):
    """A budget in its present period; without a source, that of the whole project."""

    source: str | None
    measure: str
    period: str
    used: float
    bound: float


class WorkerFact(msgspec.Struct, frozen=True):
    host: str
    beat_at: float
    is_alive: bool
    slots: int
    running: int


class Deliveries(msgspec.Struct, frozen=True, array_like=True):
    """What hooks and alert routes have not accepted yet, and what was given up."""

    waiting: int
    given_up: int


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a scrape is made of, as it was at one moment."""

    now: float
    totals: Sequence[Total]
    sources: Sequence[SourceFact]
    stages: Sequence[StageFact]
    # Jobs in quarantine, by source.
    quarantined: Mapping[str, int]
    # When the next start of a source's schedules is due, by source.
    due_at: Mapping[str, float]
    budgets: Sequence[BudgetFact]
    # The state of each source's breaker, if it ever failed; and how many of hosts are in which state.
    breakers: Mapping[str, str]
    host_breakers: Mapping[str, int]
    workers: Sequence[WorkerFact]
    # SLAs that are broken now: (source, rule), and how often.
    breaches: Mapping[tuple[str, str], int]
    # Alerts that are not resolved: (severity, state), and how many.
    alerts: Mapping[tuple[str, str], int]
    deliveries: Deliveries
    # Until when somebody leads; 0 if nobody ever did.
    led_until: float
    size_bytes: int
    # When the sums were last brought up to date, and how many lines of the journal are not in them yet.
    folded_at: float
    lag: int
    # What KPIs are made of: sums of the last days by measure and label, and when the first run was made.
    kpi_sums: Mapping[str, Mapping[str, float]]
    first_run_at: float | None
