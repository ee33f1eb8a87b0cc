"""Terms: what the configuration asks of a request, beyond its source's own rate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.gates.budget import PROJECT
from penstock.settings.budget import Bound
from penstock.settings.opening_hours import OpeningHours

if TYPE_CHECKING:
    from penstock.settings import BreakerSettings, BudgetLimit, HostLimits, Settings


@dataclass(frozen=True, slots=True)
class HostLimit:
    """What all sources together may do to a host: requests at once, requests in time, and at what hours."""

    host: str
    concurrency: int | None = None
    rate_per_s: float | None = None
    windows: OpeningHours | None = None

    @property
    def key(self) -> str:
        """The name of its places in time, and of what workers hold of it."""
        return f"host:{self.host}"


@dataclass(frozen=True, slots=True)
class Terms:
    """What one request counts against; `cost` is the money that it takes."""

    bounds: tuple[Bound, ...] = ()
    cost: float = 0.0
    host: HostLimit | None = None

    def __bool__(self) -> bool:
        return bool(self.bounds or self.host)


NO_TERMS = Terms()


@dataclass(frozen=True, slots=True)
class SourceTerms:
    """A source's bounds; those of each run have no scope yet."""

    bounds: tuple[Bound, ...] = ()
    of_each_run: tuple[Bound, ...] = ()
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class ProjectTerms:
    """The terms of every source and host of a project. `others` is for requests of no source."""

    sources: Mapping[str, SourceTerms] = field(default_factory=dict)
    others: SourceTerms = SourceTerms()
    hosts: Mapping[str, HostLimit] = field(default_factory=dict)
    # The hosts whose breaker is not the usual one; None is off.
    breakers: Mapping[str, BreakerSettings | None] = field(default_factory=dict)
    # How many requests trial runs may send, by run, as a worker comes to know of them.
    trials: dict[int, float] = field(default_factory=dict, compare=False)

    @property
    def has_budgets(self) -> bool:
        every = (*self.sources.values(), self.others)
        return any(terms.bounds or terms.of_each_run for terms in every)

    def bounds(self, source: str, run_id: int = 0) -> tuple[Bound, ...]:
        """Every budget that work for this source and run counts against."""
        terms = self.sources.get(source, self.others)
        each_run = terms.of_each_run
        if run_id in self.trials:
            trial = Bound("", "requests", "run", self.trials[run_id])
            each_run = _strictest([*each_run, trial])
        if not run_id or not each_run:
            return terms.bounds
        scope = f"run:{run_id}"
        return terms.bounds + tuple(_scoped(bound, scope) for bound in each_run)

    def bounds_of(self, source: str) -> tuple[Bound, ...]:
        """Every budget of a source, also those of each of its runs."""
        terms = self.sources.get(source, self.others)
        return (*terms.bounds, *terms.of_each_run)

    def terms(self, source: str, host: str, run_id: int = 0) -> Terms:
        """What a request for this source to this host must keep."""
        bounds = self.bounds(source, run_id)
        limit = self.hosts.get(host)
        if not bounds and limit is None:
            return NO_TERMS
        return Terms(bounds, self.cost(source), limit)

    def limits(self, host: str) -> Terms:
        """What must be kept by a request that counts against its host alone."""
        limit = self.hosts.get(host)
        return NO_TERMS if limit is None else Terms(host=limit)

    def hours(self, host: str) -> Terms:
        """What must be kept by a request that counts against nothing: the host's hours alone."""
        limit = self.hosts.get(host)
        if limit is None or limit.windows is None:
            return NO_TERMS
        return Terms(host=HostLimit(host, windows=limit.windows))

    def cost(self, source: str) -> float:
        return self.sources.get(source, self.others).cost

    def lasting(self) -> list[Bound]:
        """Every budget that begins anew by itself."""
        found = {b.key: b for terms in (*self.sources.values(), self.others) for b in terms.bounds}
        return list(found.values())


NO_RULES = ProjectTerms()


def _scoped(bound: Bound, scope: str) -> Bound:
    return Bound(scope, bound.measure, bound.period, bound.amount, bound.timezone)


def rules_of(settings: Settings) -> ProjectTerms:
    """The terms that a project's configuration asks for."""
    zone = settings.budget.timezone or "UTC"
    whole = _bounds(PROJECT, settings.budget.bounds, zone)
    cost = settings.cost.request or 0.0
    sources = {}
    for key, source in settings.sources.items():
        own = _bounds(f"source:{key}", source.budget.bounds, source.budget.timezone or zone)
        sources[key] = SourceTerms(
            tuple(bound for bound in (*whole, *own) if bound.period != "run"),
            _strictest([bound for bound in (*whole, *own) if bound.period == "run"]),
            cost if source.cost.request is None else source.cost.request,
        )
    lasting = tuple(bound for bound in whole if bound.period != "run")
    bounded = {host: _limit(host, limits) for host, limits in settings.hosts.items()}
    # A host that has a breaker of its own and no limits costs its requests nothing.
    hosts = {host: limit for host, limit in bounded.items() if limit != HostLimit(host)}
    breakers = {host: limits.breaker for host, limits in settings.hosts.items()}
    return ProjectTerms(sources, SourceTerms(lasting, (), cost), hosts, breakers)


def hours_of(settings: Settings) -> dict[str, OpeningHours]:
    """The hours of the hosts that have any."""
    limits = (_limit(host, each) for host, each in settings.hosts.items() if each.windows)
    return {limit.host: limit.windows for limit in limits if limit.windows is not None}


def hours_definitions(hours: Mapping[str, OpeningHours]) -> dict[str, str]:
    """The hours of each host in words that are equal where the hours are."""
    return {host: _definition(windows) for host, windows in hours.items()}


def _definition(windows: OpeningHours) -> str:
    parts = sorted((window.days, window.start, window.end) for window in windows.windows)
    told = [f"{','.join(map(str, days))} {start}-{end}" for days, start, end in parts]
    return "; ".join([*told, windows.timezone])


def outside(host: str) -> str:
    """What a request is told, and the job that made it, when its host has other hours."""
    return f"{host} is outside of its hours ({hours_setting(host)})"


def hours_setting(host: str) -> str:
    """Where the hours of a host are written."""
    return f"hosts.{host}.windows"


def _limit(host: str, limits: HostLimits) -> HostLimit:
    windows = OpeningHours(limits.windows, limits.timezone) if limits.windows else None
    return HostLimit(host, limits.concurrency, limits.rate_per_s, windows)


def _bounds(scope: str, limits: Iterable[BudgetLimit], zone: str) -> list[Bound]:
    return [Bound(scope, each.measure, each.period, each.amount, zone) for each in limits]


def _strictest(bounds: Iterable[Bound]) -> tuple[Bound, ...]:
    """A run has one budget of each measure, whoever asked for it."""
    found: dict[str, Bound] = {}
    for bound in bounds:
        known = found.get(bound.measure)
        if known is None or bound.amount < known.amount:
            found[bound.measure] = bound
    return tuple(found.values())
