"""The text that Prometheus scrapes, in its own format or as OpenMetrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

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
from penstock.metrics.facts import Facts
from penstock.metrics.family import Family, Scrape
from penstock.metrics.registry import FAMILIES

_WRITERS: dict[str, Callable[[CollectorRegistry], bytes]] = {
    "prometheus": generate_latest,
    "openmetrics": generate_openmetrics,
}
FORMATS = tuple(_WRITERS)
INFO_HELP = "1, with the version, the project and the kind of database as labels."


def text_of(facts: Facts, about: Mapping[str, str], most_sources: int, form: str) -> str:
    """All families. `about` are the labels of `penstock_info`: version, project, database."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(Scrape(facts, most_sources), about))
    return _WRITERS[form](registry).decode()


class _Collector:
    def __init__(self, scrape: Scrape, about: Mapping[str, str]) -> None:
        self._scrape = scrape
        self._about = about

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("penstock", INFO_HELP, dict(self._about))
        for family in FAMILIES.values():
            yield _metric(family, self._scrape)


def _metric(family: Family, scrape: Scrape) -> Metric:
    made = _KINDS[family.kind](family.name, family.help, labels=list(family.labels))
    for labels, first, *rest in family.samples(scrape):
        value = list(_cumulative(family.buckets, first)) if isinstance(first, Mapping) else first
        made.add_metric(list(labels), value, *rest)
    metric: Metric = made
    return metric


def _cumulative(measure: str, counts: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Each bucket with all that is below it, too; its bound as a float is written."""
    total = 0.0
    for label in buckets.labels(measure):
        total += counts.get(label, 0.0)
        yield label if label == buckets.INFINITE else str(float(label)), total


_KINDS: dict[str, Any] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
    "summary": SummaryMetricFamily,
}
