"""The five KPIs of the last days, from the sums that the journal was folded into."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.jobs.kpis import WEEK_S

KPI_DAYS = 30
# What has to be summed for them.
KPI_MEASURES = (
    "ended_runs",
    "recovered_jobs",
    "recovery_seconds",
    "records",
    "throttling_incidents",
    "recoveries",
    "operator_steps",
)


def kpis(
    sums: Mapping[str, Mapping[str, float]], now: float, first_run_at: float | None
) -> dict[str, float]:
    """Each number, by its name; without those for which there is nothing to count."""
    total = {measure: sum(sums.get(measure, {}).values()) for measure in KPI_MEASURES}
    found = {
        "completion_ratio": _ratio(
            sums.get("ended_runs", {}).get("completed", 0), total["ended_runs"]
        ),
        "mean_recovery_seconds": _ratio(total["recovery_seconds"], total["recovered_jobs"]),
        "duplicates_per_million": _ratio(
            1e6 * sums.get("records", {}).get("unchanged", 0), total["records"]
        ),
        "throttling_incidents_per_week": _per_week(
            total["throttling_incidents"], now, first_run_at
        ),
        "operator_steps_per_recovery": _ratio(total["operator_steps"], total["recoveries"]),
    }
    return {name: value for name, value in found.items() if value is not None}


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _per_week(incidents: float, now: float, first_run_at: float | None) -> float | None:
    """What is younger than a week is not blown up to one."""
    if first_run_at is None:
        return None
    span_s = min(now - first_run_at, KPI_DAYS * 86_400.0)
    return incidents / max(1.0, span_s / WEEK_S)
