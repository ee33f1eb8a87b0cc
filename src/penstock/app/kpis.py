"""KPIs: five numbers that say how well work recovers."""

from __future__ import annotations

from penstock.app.noun import Noun
from penstock.app.views.kpis import KpiReportView, kpi_report_view

DAY_S = 86400.0


class Kpis(Noun):
    """How well work recovers."""

    def report(self, *, days: float = 30.0, source: str | None = None) -> KpiReportView:
        """The figures of the last `days`, of all sources or of one."""
        key = self._project.source_key(source)
        store = self._store
        source_id = None if key is None else store.sources.ensure([key])[key]
        return kpi_report_view(store.kpis.report(store.now() - days * DAY_S, source_id), key)
