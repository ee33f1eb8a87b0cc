"""What metrics are made of, read at one moment: sums, counters and small tables. Nothing here scans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from penstock.metrics.facts import (
    BudgetFact,
    Deliveries,
    Facts,
    SourceFact,
    StageFact,
    Total,
    WorkerFact,
)
from penstock.metrics.kpis import KPI_DAYS, KPI_MEASURES
from penstock.metrics.measures import ALL_SOURCES, DAY_S, STORED
from penstock.store.breaker_rows import HOST, SOURCE
from penstock.store.breakers import Breakers
from penstock.store.budgets import Budgets
from penstock.store.database import to_json
from penstock.store.journal_position import read_position
from penstock.store.leaders import Leaders
from penstock.store.noun import Noun
from penstock.store.workers import Workers, last_beat

LEADER = "scheduler"
SOURCE_BUDGET, RUN_BUDGET = "source:", "run:"
# No budget of a single run is asked for.
NO_RUN = 0


class MetricFacts(Noun):
    """The verb of metrics."""

    def read(self) -> Facts:
        """Everything that a scrape is made of."""
        with self._db.at_one_moment() as now:
            breakers = Breakers(self._db).all()
            led = [each.expires_at for each in Leaders(self._db).all() if each.name == LEADER]
            position = read_position(self._db)
            ask = self._db.decoded
            return Facts(
                now=now,
                totals=ask("rollup_totals", list[Total], measures=to_json(sorted(STORED))),
                sources=ask("watched_sources", list[SourceFact]),
                stages=ask("metric_stages", list[StageFact]),
                quarantined=ask("metric_quarantined", dict[str, int]),
                due_at=ask("metric_due", dict[str, float]),
                budgets=self._budgets(),
                breakers={
                    each.key.removeprefix(SOURCE): each.state
                    for each in breakers
                    if each.key.startswith(SOURCE)
                },
                host_breakers=_counted(
                    each.state for each in breakers if each.key.startswith(HOST)
                ),
                workers=self._workers(now),
                breaches={
                    (source, rule): number
                    for source, rule, number in self._db.json("metric_breaches")
                },
                alerts={
                    (severity, state): number
                    for severity, state, number in self._db.json("metric_alerts")
                },
                deliveries=ask("metric_deliveries", Deliveries),
                led_until=max(led, default=0.0),
                size_bytes=int(self._db.value("size_bytes")),
                folded_at=position.at,
                lag=max(0, int(self._db.value("last_event_id") or 0) - position.line),
                kpi_sums=self._kpi_sums(now),
                first_run_at=self._db.value("first_run_at"),
            )

    def _budgets(self) -> list[BudgetFact]:
        rows = Budgets(self._db).all(NO_RUN)
        return [
            BudgetFact(
                source=row.scope.removeprefix(SOURCE_BUDGET)
                if row.scope.startswith(SOURCE_BUDGET)
                else None,
                measure=row.measure,
                period=row.period,
                used=row.used + row.held,
                bound=row.bound,
            )
            for row in rows
            if not row.scope.startswith(RUN_BUDGET)
        ]

    def _workers(self, now: float) -> list[WorkerFact]:
        return [
            WorkerFact(
                host=row.host,
                beat_at=last_beat(row.lease_expires_at),
                is_alive=row.lease_expires_at > now,
                slots=row.slots,
                running=row.running,
            )
            for row in Workers(self._db).all()
        ]

    def _kpi_sums(self, now: float) -> dict[str, dict[str, float]]:
        """Of whole days: the first of them is the one in which the time began."""
        since = now - KPI_DAYS * DAY_S
        where = {"source_id": ALL_SOURCES, "step": DAY_S, "since": since - since % DAY_S}
        return {
            measure: self._db.decoded(
                "rollup_by_label", dict[str, float], measure=measure, until=now + 1, **where
            )
            for measure in KPI_MEASURES
        }


def _counted(states: Iterable[str]) -> dict[str, int]:
    return dict(Counter(states))
