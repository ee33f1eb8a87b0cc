"""The samples of gauges, from maintained counters and from tables that are small by nature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from penstock.metrics.family import OTHER, Sample, Scrape, bounded
from penstock.metrics.kpis import kpis

OPEN_STATES = ("queued", "running", "waiting", "held")
BREAKER_STATES = ("closed", "half-open", "open")
PROJECT = "project"
Samples = Callable[[Scrape], Iterable[Sample]]


def open_jobs(scrape: Scrape) -> Iterable[Sample]:
    stages = bounded(each.stage for each in scrape.facts.stages)
    found: Counter[tuple[str, ...]] = Counter()
    for each in scrape.facts.stages:
        stage = each.stage if each.stage in stages else OTHER
        for state in OPEN_STATES:
            found[scrape.source(each.source), stage, state] += getattr(each, state)
    return found.items()


def depth(scrape: Scrape) -> Iterable[Sample]:
    found = dict.fromkeys(((scrape.source(each.key),) for each in scrape.facts.sources), 0.0)
    for each in scrape.facts.stages:
        found[(scrape.source(each.source),)] += each.queued
    return found.items()


def oldest(scrape: Scrape) -> Iterable[Sample]:
    ages = (
        (each.source, scrape.facts.now - each.oldest_at)
        for each in scrape.facts.stages
        if each.oldest_at is not None
    )
    return _greatest(scrape, ages)


def quarantined(scrape: Scrape) -> Iterable[Sample]:
    return _summed(scrape, scrape.facts.quarantined)


def overdue(scrape: Scrape) -> Iterable[Sample]:
    now = scrape.facts.now
    return _greatest(scrape, ((key, max(0.0, now - at)) for key, at in scrape.facts.due_at.items()))


def good_run_age(scrape: Scrape) -> Iterable[Sample]:
    now = scrape.facts.now
    ages = ((s.key, now - s.good_at) for s in scrape.facts.sources if s.good_at is not None)
    return _greatest(scrape, ages)


def paused(scrape: Scrape) -> Iterable[Sample]:
    return _summed(scrape, {each.key: int(each.is_paused) for each in scrape.facts.sources})


def breached(scrape: Scrape) -> Iterable[Sample]:
    found: Counter[tuple[str, ...]] = Counter()
    for (source, rule), number in scrape.facts.breaches.items():
        found[scrape.source(source), rule] += number
    return found.items()


def budgets(part: str) -> Samples:
    """Of `other` the sources together; the budget of the project has the label `project`."""

    def samples(scrape: Scrape) -> Iterable[Sample]:
        found: Counter[tuple[str, ...]] = Counter()
        for each in scrape.facts.budgets:
            source = "" if each.source is None else scrape.source(each.source)
            amounts = {"used": each.used, "limit": each.bound}
            amounts["left"] = max(0.0, each.bound - each.used)
            scope = PROJECT if each.source is None else "source"
            found[scope, source, each.measure, each.period] += amounts[part]  # type: ignore[assignment]
        return found.items()

    return samples


def breakers(scrape: Scrape) -> Iterable[Sample]:
    """How many, and not 1 or 0, so that those that share the label `other` add up."""
    found: Counter[tuple[str, ...]] = Counter()
    for each in scrape.facts.sources:
        states = scrape.facts.breakers.get(each.key, "closed")
        for state in BREAKER_STATES:
            found[scrape.source(each.key), state] += int(state == states)
    return found.items()


def host_breakers(scrape: Scrape) -> Iterable[Sample]:
    return (((state,), scrape.facts.host_breakers.get(state, 0)) for state in BREAKER_STATES)


def workers(scrape: Scrape) -> Iterable[Sample]:
    hosts = bounded(each.host for each in scrape.facts.workers)
    found: Counter[tuple[str, ...]] = Counter()
    for each in scrape.facts.workers:
        host = each.host if each.host in hosts else OTHER
        for state, is_it in (("alive", each.is_alive), ("expired", not each.is_alive)):
            found[host, state] += int(is_it)
    return found.items()


def of_hosts(amount: str) -> Samples:
    def samples(scrape: Scrape) -> Iterable[Sample]:
        hosts = bounded(each.host for each in scrape.facts.workers)
        found: Counter[tuple[str, ...]] = Counter()
        for each in scrape.facts.workers:
            found[(each.host if each.host in hosts else OTHER,)] += getattr(each, amount)
        return found.items()

    return samples


def beat_age(scrape: Scrape) -> Iterable[Sample]:
    hosts = bounded(each.host for each in scrape.facts.workers)
    found: dict[tuple[str, ...], float] = {}
    for each in scrape.facts.workers:
        place = (each.host if each.host in hosts else OTHER,)
        found[place] = max(found.get(place, 0.0), scrape.facts.now - each.beat_at)
    return found.items()


def kpi(name: str) -> Samples:
    def samples(scrape: Scrape) -> Iterable[Sample]:
        facts = scrape.facts
        value = kpis(facts.kpi_sums, facts.now, facts.first_run_at).get(name)
        return [] if value is None else [((), value)]

    return samples


def one(value: Callable[[Scrape], float]) -> Samples:
    return lambda scrape: [((), value(scrape))]


def _summed(scrape: Scrape, values: Mapping[str, float]) -> Iterable[Sample]:
    found: Counter[tuple[str, ...]] = Counter()
    for key, value in values.items():
        found[(scrape.source(key),)] += value  # type: ignore[assignment]
    return found.items()


def _greatest(scrape: Scrape, values: Iterable[tuple[str, float]]) -> Iterable[Sample]:
    """Of those that share the label `other`, the greatest."""
    found: dict[tuple[str, ...], float] = {}
    for key, value in values:
        place = (scrape.source(key),)
        found[place] = max(found.get(place, 0.0), value)
    return found.items()
