"""Targets of a dataset: the figure, what it should be, and whether it is."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from penstock.builder.quality.summary import QualitySummary

DEFAULT_TARGETS = {
    "min_quality_score": 80.0,
    "max_dup_pct": 1.5,
    "min_url_valid_pct": 85.0,
    "min_domain_resolved_pct": 80.0,
    "min_email_plausible_pct": 60.0,
    "min_lines_per_s": 50.0,
}


class Kpi(msgspec.Struct, frozen=True):
    """One target. A figure that nobody could measure does not meet it."""

    name: str
    target: float
    value: float | None
    is_met: bool


def kpis(
    summary: QualitySummary,
    targets: Mapping[str, float] = DEFAULT_TARGETS,
    lines_per_s: float | None = None,
) -> list[Kpi]:
    """Each target beside its figure, in the order of the targets; the caller measures `lines_per_s`."""
    values = {
        "quality_score": summary.quality_score,
        "dup_pct": summary.dup_pct,
        "url_valid_pct": summary.url_valid_pct,
        "domain_resolved_pct": summary.domain_resolved_pct,
        "email_plausible_pct": summary.email_plausible_pct,
        "lines_per_s": lines_per_s,
    }
    return [
        _kpi(name, target, values.get(name.partition("_")[2])) for name, target in targets.items()
    ]


def _kpi(name: str, target: float, value: float | None) -> Kpi:
    if value is None:
        return Kpi(name, target, None, is_met=False)
    is_met = value <= target if name.startswith("max_") else value >= target
    return Kpi(name, target, round(value, 2), is_met)
