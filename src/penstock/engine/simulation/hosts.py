"""The hosts of a simulation: who asks them, and what of their limits, hours and breakers holds a lane back.

Only those that the configuration names, and that a source is known to ask: by its own name, or by an address
in its `params`. All that such a source asks for is taken to be asked of that host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from penstock.engine.simulation.figures import HostFigures
from penstock.engine.simulation.guards import Guard, JobEnds
from penstock.gates.breaker import HOST_RAMP, ramp_at
from penstock.gates.lane import UNLIMITED
from penstock.gates.project_terms import HostLimit
from penstock.http.addresses import host_key
from penstock.http.failures import FetchError
from penstock.settings import SourceSettings
from penstock.settings.opening_hours import window_opens_at
from penstock.settings.values import BreakerSettings

if TYPE_CHECKING:
    from penstock.engine.simulation.sources import SimulatedSource


@dataclass(slots=True, eq=False)
class SimulatedHost:
    """A host with what is under way to it. `next_place_at` and `full_until` are those of its rate."""

    limit: HostLimit
    rule: BreakerSettings | None
    guard: Guard
    figures: HostFigures
    running: int = 0
    next_place_at: float = 0.0
    full_until: float = 0.0
    # The sources that wait for a place, who came first first, and when they are looked at again.
    waiting: dict[int, SimulatedSource] = field(default_factory=dict)
    lets_in_at: float = inf

    def opens_at(self, now: float) -> float:
        """When it may be asked as far as its hours and its breaker go; `now` if it may be."""
        opens_at = None
        if self.limit.windows is not None:
            opens_at = window_opens_at(self.limit.windows, now)
        return max(opens_at or now, self.away_until(now))

    def away_until(self, now: float) -> float:
        """Until when its breaker lets nothing pass; `now` if it does."""
        breaker = self.guard.breaker
        return max(now, breaker.opens_at) if breaker.state == "open" else now

    def places(self, now: float) -> int:
        """How many more may be under way to it."""
        if self.full_until > now:
            return 0
        breaker = self.guard.breaker
        ramp = ramp_at(breaker.state, breaker.opens_at, breaker.ramp, now)
        bounds = (each for each in (ramp, self.limit.concurrency) if each is not None)
        return max(0, min(bounds, default=UNLIMITED) - self.running)

    def learn(self, ends: JobEnds, now: float, chance: float) -> None:
        """What became of what was asked of it."""
        if self.rule is None:
            return
        before = self.guard.breaker.trips
        self.guard.follow(self.rule, HOST_RAMP, ends, now, chance)
        self.figures.trips += max(0, self.guard.breaker.trips - before)


def hosts_of(source: SourceSettings, known: Mapping[str, object]) -> list[str]:
    """Those of these hosts that a source asks, as far as its name and its addresses say."""
    found = [source.key] if source.key in known else []
    found += (host for host in _hosts_in(source.params) if host in known)
    return list(dict.fromkeys(found))


def _hosts_in(value: Any) -> Iterator[str]:
    match value:
        case str() if value.startswith(("http://", "https://")):
            try:
                yield host_key(value)
            except FetchError:
                return
        case dict():
            for each in value.values():
                yield from _hosts_in(each)
        case list() | tuple():
            for each in value:
                yield from _hosts_in(each)
