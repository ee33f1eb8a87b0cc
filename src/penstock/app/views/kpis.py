"""KPIs as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.app.views.view import Time, View

if TYPE_CHECKING:
    from penstock.store.kpis import KpiReport


class KpiView(View, frozen=True, kw_only=True):
    """One number; None where there is nothing to count. `counted` is how many things it is about."""

    value: float | None
    unit: str
    counted: int
    of: str


class KpiReportView(View, frozen=True, kw_only=True):
    """Figures about recovery. `journal_since` is where the journal starts, if not before."""

    since: Time
    until: Time
    journal_since: Time | None
    source: str | None
    kpis: dict[str, KpiView]


def kpi_report_view(report: KpiReport, source: str | None) -> KpiReportView:
    return KpiReportView(
        since=report.since,
        until=report.until,
        journal_since=report.journal_since,
        source=source,
        kpis={
            each.name: KpiView(value=each.value, unit=each.unit, counted=each.counted, of=each.of)
            for each in report.kpis
        },
    )
