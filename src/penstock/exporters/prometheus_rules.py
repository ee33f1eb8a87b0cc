"""Alert and recording rules for Prometheus, as data.

Penstock's own alerts know more: the history of each source, and the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["low", "medium", "high", "critical"]


@dataclass(frozen=True, slots=True)
class RecordingRule:
    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class AlertRule:
    """`holds` is for how long the expression must hold; `runbook` is the name of Penstock's own."""

    name: str
    expression: str
    holds: str
    severity: Severity
    summary: str
    runbook: str = ""


_SAVED = "sum by (instance, source) (rate(penstock_records_total[30m]))"
_REJECTED = "sum by (instance, source) (rate(penstock_rejected_total[30m]))"
_ACCEPTED = 'sum by (instance, source) (rate(penstock_records_total{result=~"new|changed"}[30m]))'
_SAME = 'sum by (instance, source) (rate(penstock_records_total{result="unchanged"}[30m]))'


def _p95(name: str, by: str) -> str:
    return f"histogram_quantile(0.95, sum by ({by}, le) (rate(penstock_{name}_bucket[30m])))"


RECORDING = (
    RecordingRule("source:penstock_yield:rate30m", _ACCEPTED),
    RecordingRule("source:penstock_accepted:ratio30m", f"{_ACCEPTED} / ({_SAVED} + {_REJECTED})"),
    RecordingRule("source:penstock_rejected:ratio30m", f"{_REJECTED} / ({_SAVED} + {_REJECTED})"),
    RecordingRule("source:penstock_duplicates:ratio30m", f"{_SAME} / {_SAVED}"),
    RecordingRule(
        "source:penstock_quarantined:ratio30m",
        'sum by (instance, source) (rate(penstock_jobs_ended_total{outcome="quarantined"}[30m])) / '
        "sum by (instance, source) (rate(penstock_jobs_ended_total[30m]))",
    ),
    RecordingRule(
        "source:penstock_attempt_duration_seconds:p95_30m",
        _p95("attempt_duration_seconds", "instance, source"),
    ),
    RecordingRule(
        "source:penstock_fetch_duration_seconds:p95_30m",
        _p95("fetch_duration_seconds", "instance, source"),
    ),
    RecordingRule(
        "instance:penstock_turn_duration_seconds:p95_30m", _p95("turn_duration_seconds", "instance")
    ),
)
ALERTS = (
    AlertRule(
        "PenstockMissing",
        "absent(penstock_info)",
        "5m",
        "critical",
        "Prometheus gets no metrics from Penstock",
    ),
    AlertRule(
        "PenstockNobodyLeads",
        "penstock_leader_up == 0",
        "5m",
        "critical",
        "No process schedules runs on {{ $labels.instance }}",
        "schedule-missed",
    ),
    AlertRule(
        "PenstockNoWorkers",
        "sum by (instance) (penstock_queue_depth) > 0 unless on (instance) "
        '(sum by (instance) (penstock_workers{state="alive"}) > 0)',
        "5m",
        "critical",
        "Jobs are queued and no worker is alive on {{ $labels.instance }}",
        "workers-dead",
    ),
    AlertRule(
        "PenstockWorkersDie",
        "increase(penstock_worker_deaths_total[1h]) > 3",
        "0m",
        "high",
        "More than 3 workers died within an hour on {{ $labels.instance }}",
        "workers-dead",
    ),
    AlertRule(
        "PenstockSumsBehind",
        "penstock_sums_lag_events > 100000",
        "15m",
        "medium",
        "Counters of {{ $labels.instance }} are {{ $value }} events behind",
    ),
    AlertRule(
        "PenstockTurnsSlow",
        "instance:penstock_turn_duration_seconds:p95_30m > 2",
        "15m",
        "medium",
        "Turns take {{ $value | humanizeDuration }} (p95) on {{ $labels.instance }}",
        "database-down",
    ),
    AlertRule(
        "PenstockQueueOld",
        "penstock_queue_oldest_age_seconds > 6 * 3600",
        "15m",
        "medium",
        "Jobs of {{ $labels.source }} have been queued for {{ $value | humanizeDuration }}",
        "backlog-growth",
    ),
    AlertRule(
        "PenstockStartOverdue",
        "penstock_schedule_overdue_seconds > 900",
        "5m",
        "high",
        "A start of {{ $labels.source }} has been due for {{ $value | humanizeDuration }}",
        "schedule-missed",
    ),
    AlertRule(
        "PenstockStartMissed",
        "increase(penstock_schedule_misses_total[1h]) > 0",
        "0m",
        "medium",
        "Starts of {{ $labels.source }} were missed: no scheduler was running",
        "schedule-missed",
    ),
    AlertRule(
        "PenstockSlaBroken",
        "penstock_sla_breached > 0",
        "0m",
        "high",
        "{{ $labels.source }} breaks its SLA: {{ $labels.rule }}",
        "source-broke",
    ),
    AlertRule(
        "PenstockZeroYield",
        "increase(penstock_fetches_total[6h]) > 50 unless on (instance, source) "
        "(sum by (instance, source) (increase(penstock_records_total[6h])) > 0)",
        "30m",
        "high",
        "{{ $labels.source }} was fetched and no record was saved for 6 hours",
        "source-broke",
    ),
    AlertRule(
        "PenstockManyQuarantined",
        "source:penstock_quarantined:ratio30m > 0.2",
        "30m",
        "high",
        "{{ $value | humanizePercentage }} of the jobs of {{ $labels.source }} are quarantined",
        "source-broke",
    ),
    AlertRule(
        "PenstockManyRejected",
        "source:penstock_rejected:ratio30m > 0.5",
        "1h",
        "medium",
        "{{ $value | humanizePercentage }} of the items of {{ $labels.source }} are rejected",
        "low-quality",
    ),
    AlertRule(
        "PenstockBreakerOpen",
        'penstock_breakers{state="open"} > 0',
        "30m",
        "medium",
        "The breaker of {{ $labels.source }} has been open for 30 minutes",
        "source-broke",
    ),
    AlertRule(
        "PenstockBudgetLow",
        "penstock_budget_left / penstock_budget_limit < 0.1",
        "5m",
        "medium",
        "Less than 10 % of a budget is left: {{ $labels.scope }} {{ $labels.source }} {{ $labels.measure }}",
        "budget-running-out",
    ),
    AlertRule(
        "PenstockDeliveryGivenUp",
        'delta(penstock_deliveries{state="given_up"}[1h]) > 0',
        "0m",
        "medium",
        "A message of a hook or an alert route was not delivered after all retries ({{ $labels.instance }})",
        "delivery-failed",
    ),
    AlertRule(
        "PenstockAlertOpen",
        'sum by (instance, severity) (penstock_alerts{state="open", severity=~"high|critical"}) > 0',
        "0m",
        "high",
        "Penstock on {{ $labels.instance }} has open alerts of severity {{ $labels.severity }}",
    ),
)
