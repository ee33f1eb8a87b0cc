"""Families that are sums since the beginning: the journal, folded, and what attempts have measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.metrics.family import Family, HistogramSample, Kind, Sample, Scrape, SummarySample
from penstock.metrics.fold import ENDS, RUN_ENDS
from penstock.metrics.measures import MEASURES, SUMS

Samples = Callable[[Scrape], Iterable[Sample | HistogramSample | SummarySample]]
OF_SOURCE = ("source",)
# Labels that every source has from the beginning: a rate needs a 0 before the first 1.
KNOWN: dict[str, tuple[str, ...]] = {
    "attempts": tuple(ENDS.values()),
    "records": ("new", "changed", "unchanged"),
    "runs": tuple(RUN_ENDS.values()),
}


def _by_source(measure: str) -> Samples:
    return lambda scrape: scrape.by_source(measure).items()


def _by_label(measure: str) -> Samples:
    known = KNOWN.get(measure, ())
    return lambda scrape: scrape.by_label(measure, known).items()


def _jobs(scrape: Scrape) -> Iterable[Sample]:
    """Their label has the stage and the outcome."""
    for (source, label), value in scrape.by_label("jobs").items():
        stage, _, outcome = label.rpartition(":")
        yield (source, stage or label, outcome if stage else label), value


def _histogram(measure: str) -> Samples:
    def samples(scrape: Scrape) -> Iterable[HistogramSample]:
        sums = scrape.by_source(SUMS[measure])
        for source, counts in scrape.buckets(measure).items():
            yield (source,), counts, sums.get((source,), 0.0)

    return samples


def _turns(scrape: Scrape) -> Iterable[HistogramSample]:
    counts = scrape.of_all("turn_seconds")
    yield (), counts, scrape.of_all(SUMS["turn_seconds"]).get("", 0.0)


def _lateness(scrape: Scrape) -> Iterable[SummarySample]:
    late_s = scrape.by_source("lateness_seconds")
    for source, starts in scrape.by_source("starts").items():
        yield source, starts, late_s.get(source, 0.0)


def _deaths(scrape: Scrape) -> Iterable[Sample]:
    yield (), scrape.of_all("worker_deaths").get("", 0.0)


def _family(
    name: str,
    measure: str,
    samples: Samples,
    labels: tuple[str, ...] = OF_SOURCE,
    kind: Kind = "counter",
    about: str = "",
) -> Family:
    return Family(
        name=f"penstock_{name}",
        kind=kind,
        help=about or MEASURES[measure].about,
        derived=f"sums of `{measure}`",
        labels=labels,
        samples=samples,
        buckets=measure if kind == "histogram" else "",
    )


def _counter(name: str, measure: str, label: str = "", about: str = "") -> Family:
    if label:
        return _family(name, measure, _by_label(measure), ("source", label), about=about)
    return _family(name, measure, _by_source(measure), about=about)


COUNTED: tuple[Family, ...] = (
    _family("jobs_ended", "jobs", _jobs, ("source", "stage", "outcome")),
    _counter("attempts", "attempts", "outcome"),
    _family(
        "attempt_duration_seconds",
        "attempt_seconds",
        _histogram("attempt_seconds"),
        kind="histogram",
    ),
    _counter("fetches", "fetches"),
    _family(
        "fetch_duration_seconds", "fetch_seconds", _histogram("fetch_seconds"), kind="histogram"
    ),
    _counter("received_bytes", "bytes"),
    _counter("retries", "retries"),
    _counter("throttles", "throttles"),
    _counter("quarantines", "quarantines", "kind"),
    _counter(
        "records",
        "records",
        "result",
        "Saves by what they did: new and changed are accepted, unchanged are duplicates.",
    ),
    _counter("rejected", "rejected"),
    _family("quality_score", "quality", _histogram("quality"), kind="histogram"),
    _counter(
        "runs", "runs", "state", "Runs that ended, by state; one that is retried ends once more."
    ),
    _family(
        "schedule_lateness_seconds",
        "lateness_seconds",
        _lateness,
        kind="summary",
        about="Time between a scheduled start and the moment that its run was queued.",
    ),
    _counter("schedule_misses", "misses"),
    _counter("sla_breaches", "breaches", "rule"),
    _counter("throttling_incidents", "throttling_incidents"),
    _counter("recovered_jobs", "recovered_jobs"),
    _counter("recovery_seconds", "recovery_seconds"),
    _family("worker_deaths", "worker_deaths", _deaths, ()),
    _family("turn_duration_seconds", "turn_seconds", _turns, (), "histogram"),
)
