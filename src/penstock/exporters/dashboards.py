"""What the Grafana dashboards show: panels with their queries, as data.

In a query `$at` stands for the chosen projects, `$of` for these and the chosen sources, and `$r` for the
time over which rates are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AT = 'instance=~"$instance"'
OF = f'{AT}, source=~"$source"'
# What was judged: saved or rejected.
JUDGED = "sum(rate(penstock_records_total{$of}[$r])) + sum(rate(penstock_rejected_total{$of}[$r]))"
Shape = Literal["timeseries", "stat", "table", "heatmap"]


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    legend: str = ""

    @property
    def expression(self) -> str:
        text = self.text.replace("$at", AT).replace("$of", OF)
        return text.replace("[$r]", "[$__rate_interval]")


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    shape: Shape = "timeseries"
    about: str = ""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """`has_sources`: sources can be chosen."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    has_sources: bool = False


def _panel(
    title: str, text: str, legend: str = "", unit: str = "short", shape: Shape = "timeseries"
) -> Panel:
    return Panel(title, (Query(text, legend),), unit, shape)


def _quantiles(title: str, histogram: str, which: str) -> Panel:
    """The median and the 95th percentile of a histogram."""
    queries = (
        Query(
            f"histogram_quantile({q}, sum by (le) (rate({histogram}_bucket{{{which}}}[$r])))",
            f"p{round(q * 100)}",
        )
        for q in (0.5, 0.95)
    )
    return Panel(title, tuple(queries), "s")


OVERVIEW = Dashboard(
    "overview",
    "Penstock: overview",
    (
        _panel("Workers alive", 'sum(penstock_workers{$at, state="alive"})', shape="stat"),
        _panel("Jobs queued", "sum(penstock_queue_depth{$at})", shape="stat"),
        _panel("In quarantine", "sum(penstock_quarantined_jobs{$at})", shape="stat"),
        _panel("Open alerts", 'sum(penstock_alerts{$at, state="open"})', shape="stat"),
        _panel("SLAs broken", "sum(penstock_sla_breached{$at})", shape="stat"),
        _panel("Breakers open", 'sum(penstock_breakers{$at, state="open"})', shape="stat"),
        _panel(
            "Runs that ended, per hour",
            "sum by (state) (increase(penstock_runs_total{$at}[1h]))",
            "{{state}}",
        ),
        _panel("Backlog", "sum by (state) (penstock_jobs{$at})", "{{state}}"),
        _panel(
            "Records per second",
            "sum by (result) (rate(penstock_records_total{$at}[$r]))",
            "{{result}}",
        ),
        _panel(
            "Sources that are late",
            "topk(10, penstock_schedule_overdue_seconds{$at} > 0)",
            "{{source}}",
            "s",
        ),
        _panel(
            "Oldest queued job",
            "topk(10, penstock_queue_oldest_age_seconds{$at})",
            "{{source}}",
            "s",
        ),
        _panel(
            "Quarantined per hour",
            "topk(10, sum by (source) (increase(penstock_quarantines_total{$at}[1h])))",
            "{{source}}",
        ),
        _panel(
            "Budgets used",
            "penstock_budget_used{$at} / penstock_budget_limit{$at}",
            "{{scope}} {{source}} {{measure}} per {{period}}",
            "percentunit",
        ),
        _panel(
            "Age of the last good run",
            "topk(20, penstock_source_good_run_age_seconds{$at})",
            "{{source}}",
            "s",
            "table",
        ),
        _panel(
            "Completed without restart",
            "penstock_kpi_completion_ratio{$at}",
            "",
            "percentunit",
            "stat",
        ),
        _panel("Mean recovery time", "penstock_kpi_mean_recovery_seconds{$at}", "", "s", "stat"),
        _panel("Duplicates per million", "penstock_kpi_duplicates_per_million{$at}", shape="stat"),
        _panel(
            "Throttling incidents per week",
            "penstock_kpi_throttling_incidents_per_week{$at}",
            shape="stat",
        ),
        _panel(
            "Operator steps per recovery",
            "penstock_kpi_operator_steps_per_recovery{$at}",
            shape="stat",
        ),
    ),
)
SOURCE = Dashboard(
    "source",
    "Penstock: source",
    (
        _panel(
            "Yield: new and changed records per second",
            'sum by (source) (rate(penstock_records_total{$of, result=~"new|changed"}[$r]))',
            "{{source}}",
        ),
        _panel(
            "Accepted, of what was saved or rejected",
            f'sum(rate(penstock_records_total{{$of, result=~"new|changed"}}[$r])) / ({JUDGED})',
            "accepted",
            "percentunit",
        ),
        _panel(
            "Rejected",
            f"sum(rate(penstock_rejected_total{{$of}}[$r])) / ({JUDGED})",
            "rejected",
            "percentunit",
        ),
        _panel(
            "Duplicates, of what was saved",
            'sum(rate(penstock_records_total{$of, result="unchanged"}[$r])) / '
            "sum(rate(penstock_records_total{$of}[$r]))",
            "duplicates",
            "percentunit",
        ),
        _panel(
            "Quality",
            "sum by (le) (increase(penstock_quality_score_bucket{$of}[1h]))",
            "{{le}}",
            shape="heatmap",
        ),
        _panel(
            "Mean quality",
            "sum(rate(penstock_quality_score_sum{$of}[$r])) / "
            "sum(rate(penstock_quality_score_count{$of}[$r]))",
            "mean",
        ),
        _panel(
            "Jobs that ended, by stage",
            "sum by (stage, outcome) (rate(penstock_jobs_ended_total{$of}[$r]))",
            "{{stage}} {{outcome}}",
        ),
        _panel("Open jobs", "sum by (stage, state) (penstock_jobs{$of})", "{{stage}} {{state}}"),
        _quantiles("Attempts", "penstock_attempt_duration_seconds", "$of"),
        _quantiles("Fetches", "penstock_fetch_duration_seconds", "$of"),
        _panel(
            "Attempts by outcome",
            "sum by (outcome) (rate(penstock_attempts_total{$of}[$r]))",
            "{{outcome}}",
        ),
        _panel(
            "Retries and throttles",
            "sum by (source) (rate(penstock_retries_total{$of}[$r])) + "
            "sum by (source) (rate(penstock_throttles_total{$of}[$r]))",
            "{{source}}",
        ),
        _panel(
            "Quarantined, by kind",
            "sum by (kind) (increase(penstock_quarantines_total{$of}[1h]))",
            "{{kind}}",
        ),
        _panel(
            "Requests per second",
            "sum(rate(penstock_fetches_total{$of}[$r]))",
            "requests",
        ),
        _panel(
            "Received",
            "sum(rate(penstock_received_bytes_total{$of}[$r]))",
            "bytes",
            "Bps",
        ),
        _panel("Breaker", "sum by (state) (penstock_breakers{$of})", "{{state}}"),
        _panel("Budget left", "penstock_budget_left{$of}", "{{measure}} per {{period}}"),
        _panel(
            "Runs by state, per day",
            "sum by (state) (increase(penstock_runs_total{$of}[1d]))",
            "{{state}}",
        ),
        _panel(
            "Mean lateness of starts",
            "sum(increase(penstock_schedule_lateness_seconds_sum{$of}[1d])) / "
            "sum(increase(penstock_schedule_lateness_seconds_count{$of}[1d]))",
            "late",
            "s",
        ),
        _panel(
            "Missed starts per day",
            "sum(increase(penstock_schedule_misses_total{$of}[1d]))",
            "missed",
        ),
        _panel("SLAs broken", "penstock_sla_breached{$of}", "{{source}} {{rule}}"),
        _panel(
            "SLA breaches per day",
            "sum by (rule) (increase(penstock_sla_breaches_total{$of}[1d]))",
            "{{rule}}",
        ),
        _panel("Paused", "penstock_source_paused{$of}", "{{source}}"),
    ),
    has_sources=True,
)
ENGINE = Dashboard(
    "engine",
    "Penstock: engine",
    (
        _panel(
            "Version", "penstock_info{$at}", "{{project}} {{version}} on {{database}}", shape="stat"
        ),
        _panel("A leader is elected", "penstock_leader_up{$at}", shape="stat"),
        _panel("Database", "penstock_store_size_bytes{$at}", "size", "bytes"),
        _panel("Workers", "sum by (host, state) (penstock_workers{$at})", "{{host}} {{state}}"),
        _panel(
            "Slots in use",
            "sum by (host) (penstock_worker_running_jobs{$at}) / sum by (host) (penstock_worker_slots{$at})",
            "{{host}}",
            "percentunit",
        ),
        _panel("Silent for", "penstock_worker_beat_age_seconds{$at}", "{{host}}", "s"),
        _panel(
            "Dead workers per hour", "increase(penstock_worker_deaths_total{$at}[1h])", "deaths"
        ),
        _quantiles("Turns", "penstock_turn_duration_seconds", "$at"),
        _panel(
            "Turns per second",
            "rate(penstock_turn_duration_seconds_count{$at}[$r])",
            "turns",
        ),
        _panel("Queue by source", "topk(20, penstock_queue_depth{$at})", "{{source}}"),
        _panel(
            "Interrupted jobs that started again, per hour",
            "sum(increase(penstock_recovered_jobs_total{$at}[1h]))",
            "jobs",
        ),
        _panel(
            "Time until they started again",
            "sum(increase(penstock_recovery_seconds_total{$at}[1h])) / "
            "sum(increase(penstock_recovered_jobs_total{$at}[1h]))",
            "mean",
            "s",
        ),
        _panel(
            "Throttling incidents per day",
            "sum by (source) (increase(penstock_throttling_incidents_total{$at}[1d]))",
            "{{source}}",
        ),
        _panel("Journal not summed yet", "penstock_sums_lag_events{$at}", "events"),
        _panel(
            "Sums brought up to date",
            "time() - penstock_sums_updated_timestamp_seconds{$at}",
            "ago",
            "s",
        ),
        _panel("Hosts by breaker", "sum by (state) (penstock_host_breakers{$at})", "{{state}}"),
        _panel("Messages not accepted", "penstock_deliveries{$at}", "{{state}}"),
    ),
)
DASHBOARDS = (OVERVIEW, SOURCE, ENGINE)
