"""The text of metrics is what the library of Prometheus would write, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import CollectorRegistry

from penstock.metrics import buckets
from penstock.metrics.exposition import INFO_HELP, text_of
from penstock.metrics.facts import (
    BudgetFact,
    Deliveries,
    Facts,
    SourceFact,
    StageFact,
    Total,
    WorkerFact,
)
from penstock.metrics.family import Scrape
from penstock.metrics.measures import STORED
from penstock.metrics.registry import FAMILIES

WRITERS: dict[str, Callable[[CollectorRegistry], bytes]] = {
    "prometheus": generate_latest,
    "openmetrics": generate_openmetrics,
}
KINDS: dict[str, Any] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
    "summary": SummaryMetricFamily,
}
ABOUT = {"version": "1.0", "project": 'a "b" \\ c', "database": "sqlite"}
NOW = 1.8e9
KEYS = ["shop.example", 'quote".example', "back\\slash", "new\nline", "größe.example", "last"]
VALUES = [0.0, 1.0, 0.1, 1e-7, 999_999.0, 1_000_000.0, 12_345_678.5, 1e21, 3.0000000000000004]


def totals() -> list[Total]:
    found: list[Total] = []
    for at, key in enumerate(reversed(KEYS)):
        for number, measure in enumerate(sorted(STORED)):
            known = buckets.BUCKETS.get(measure)
            labels = ("a:ok", "b", 'c"', "") if known is None else buckets.labels(measure)[::2]
            found += [
                (key, measure, label, VALUES[(at + number + place) % len(VALUES)])
                for place, label in enumerate(labels)
            ]
    return [*found, (None, "worker_deaths", "", 3.0), (None, "turn_seconds", "+Inf", 2.0)]


FACTS = Facts(
    now=NOW,
    totals=totals(),
    sources=[SourceFact(n, key, n == 1, n, NOW - n if n else None) for n, key in enumerate(KEYS)],
    stages=[StageFact(key, 'st"age', 3, 1, 2_000_000, 0, NOW - 100) for key in KEYS],
    quarantined={KEYS[1]: 2},
    due_at={KEYS[0]: NOW + 60},
    budgets=[BudgetFact(None, "requests", "d", 5.0, 100.0), BudgetFact("last", "bytes", "d", 1, 2)],
    breakers={KEYS[3]: "open"},
    host_breakers={"open": 2},
    workers=[WorkerFact("host", NOW - 1, True, 32, 5)],
    breaches={(KEYS[4], "freshness"): 2},
    alerts={("high", "open"): 1},
    deliveries=Deliveries(1, 0),
    led_until=NOW + 5,
    size_bytes=10**9,
    folded_at=NOW - 1,
    lag=3,
    kpi_sums={},
    first_run_at=NOW - 1e6,
)


class Collector:
    def __init__(self, scrape: Scrape) -> None:
        self._scrape = scrape

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("penstock", INFO_HELP, ABOUT)
        for family in FAMILIES.values():
            made = KINDS[family.kind](family.name, family.help, labels=list(family.labels))
            for labels, first, *rest in family.samples(self._scrape):
                value = cumulative(family.buckets, first) if isinstance(first, Mapping) else first
                made.add_metric(list(labels), value, *rest)
            yield made


def cumulative(measure: str, counts: Mapping[str, float]) -> list[tuple[str, float]]:
    total, found = 0.0, []
    for label in buckets.labels(measure):
        total += counts.get(label, 0.0)
        found.append((label if label == buckets.INFINITE else str(float(label)), total))
    return found


@pytest.mark.parametrize("most_sources", [3, 100])
@pytest.mark.parametrize("form", WRITERS)
def test_text_is_what_the_library_would_write(form: str, most_sources: int) -> None:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector(Scrape(FACTS, most_sources)))
    expected = WRITERS[form](registry).decode()

    assert text_of(FACTS, ABOUT, most_sources, form) == expected
    assert {family.kind for family in FAMILIES.values()} == set(KINDS)
    assert len(expected.splitlines()) > 500
