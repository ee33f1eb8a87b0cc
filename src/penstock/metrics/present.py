"""Families that say how things stand now: maintained counters, and tables that are small by nature."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.counting import count
from penstock.metrics.family import Family
from penstock.metrics.gauges import (
    Samples,
    beat_age,
    breached,
    breakers,
    budgets,
    depth,
    good_run_age,
    host_breakers,
    kpi,
    of_hosts,
    oldest,
    one,
    open_jobs,
    overdue,
    paused,
    quarantined,
    workers,
)
from penstock.metrics.kpis import KPI_DAYS


def _gauge(
    name: str, about: str, derived: str, samples: Samples, labels: Iterable[str] = ("source",)
) -> Family:
    return Family(
        name=f"penstock_{name}",
        kind="gauge",
        help=about,
        derived=derived,
        labels=tuple(labels),
        samples=samples,
    )


_BUDGET = ("scope", "source", "measure", "period")
_KPI = f"sums of the last {count(KPI_DAYS, 'day')}"
PRESENT: tuple[Family, ...] = (
    _gauge(
        "jobs",
        "Jobs of active runs that have not ended, by stage and state.",
        "counters of stages",
        open_jobs,
        ("source", "stage", "state"),
    ),
    _gauge(
        "queue_depth",
        "Jobs that could start now, in the lane of a source.",
        "counters of stages",
        depth,
    ),
    _gauge(
        "queue_oldest_age_seconds",
        "How long the first job in the lane of a source has been queued.",
        "the first queued job of each stage",
        oldest,
    ),
    _gauge(
        "quarantined_jobs", "Jobs that are in quarantine now.", "index of quarantine", quarantined
    ),
    _gauge(
        "schedule_overdue_seconds",
        "How long the next start of a source has been due; 0 before it is.",
        "table of schedules",
        overdue,
    ),
    _gauge(
        "source_good_run_age_seconds",
        "Time since the last good run (completed or partial) of a source ended.",
        "index of good runs",
        good_run_age,
    ),
    _gauge("source_paused", "Paused sources.", "table of sources", paused),
    _gauge(
        "sla_breached",
        "SLAs that a source breaks now, by rule.",
        "index of open breaches",
        breached,
        ("source", "rule"),
    ),
    _gauge(
        "budget_used",
        "Used and reserved in this period of a budget.",
        "table of budgets",
        budgets("used"),
        _BUDGET,
    ),
    _gauge(
        "budget_left",
        "Left in this period of a budget.",
        "table of budgets",
        budgets("left"),
        _BUDGET,
    ),
    _gauge("budget_limit", "Limit of a budget.", "table of budgets", budgets("limit"), _BUDGET),
    _gauge(
        "breakers",
        "Circuit breakers of sources, by state.",
        "table of breakers",
        breakers,
        ("source", "state"),
    ),
    _gauge(
        "host_breakers",
        "Circuit breakers of hosts that failed, by state.",
        "table of breakers",
        host_breakers,
        ["state"],
    ),
    _gauge(
        "workers",
        "Workers by host: alive, or expired (dead, not yet reaped).",
        "table of workers",
        workers,
        ("host", "state"),
    ),
    _gauge(
        "worker_slots",
        "Jobs that the workers of a host can run at once.",
        "table of workers",
        of_hosts("slots"),
        ["host"],
    ),
    _gauge(
        "worker_running_jobs",
        "Jobs that the workers of a host run.",
        "index of running jobs",
        of_hosts("running"),
        ["host"],
    ),
    _gauge(
        "worker_beat_age_seconds",
        "Time since the last beat of the worker of a host that is silent for longest.",
        "table of workers",
        beat_age,
        ["host"],
    ),
    _gauge(
        "leader_up",
        "1 while a process schedules, judges alerts and sums the journal.",
        "table of leaders",
        one(lambda scrape: float(scrape.facts.led_until > scrape.facts.now)),
        (),
    ),
    _gauge(
        "sums_lag_events",
        "Lines of the journal that are not in the sums behind the counters yet.",
        "position in the journal",
        one(lambda scrape: float(scrape.facts.lag)),
        (),
    ),
    _gauge(
        "sums_updated_timestamp_seconds",
        "When the sums behind the counters were last brought up to date.",
        "position in the journal",
        one(lambda scrape: scrape.facts.folded_at),
        (),
    ),
    _gauge(
        "store_size_bytes",
        "Size of the database.",
        "the database",
        one(lambda scrape: float(scrape.facts.size_bytes)),
        (),
    ),
    _gauge(
        "alerts",
        "Alerts that are not resolved, by severity and state.",
        "index of unresolved alerts",
        lambda scrape: ((labels, float(number)) for labels, number in scrape.facts.alerts.items()),
        ("severity", "state"),
    ),
    _gauge(
        "deliveries",
        "Messages of hooks and alert routes that were not accepted: waiting, or given up.",
        "index of undelivered messages",
        lambda scrape: [
            (("waiting",), float(scrape.facts.deliveries.waiting)),
            (("given_up",), float(scrape.facts.deliveries.given_up)),
        ],
        ["state"],
    ),
    _gauge(
        "kpi_completion_ratio",
        "Completed runs, of those that ended or were started over.",
        _KPI,
        kpi("completion_ratio"),
        (),
    ),
    _gauge(
        "kpi_mean_recovery_seconds",
        "Mean time until an interrupted job started again.",
        _KPI,
        kpi("mean_recovery_seconds"),
        (),
    ),
    _gauge(
        "kpi_duplicates_per_million",
        "Saves that changed nothing, per million saves.",
        _KPI,
        kpi("duplicates_per_million"),
        (),
    ),
    _gauge(
        "kpi_throttling_incidents_per_week",
        "Times that a provider asked a source to wait, per week.",
        _KPI,
        kpi("throttling_incidents_per_week"),
        (),
    ),
    _gauge(
        "kpi_operator_steps_per_recovery",
        "Acts of people per recovery of a source.",
        _KPI,
        kpi("operator_steps_per_recovery"),
        (),
    ),
)
