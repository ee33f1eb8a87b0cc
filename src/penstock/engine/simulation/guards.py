"""Guards: breakers of a simulation, of sources and of hosts, told what went well and what failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.gates.breaker import PARTS, Breaker, Tally, follow, half_open, part_of
from penstock.settings.values import BreakerSettings


class JobEnds(NamedTuple):
    """What became of jobs that ended together; `again` had failed before, and have again."""

    ok: int
    failed: int = 0
    again: int = 0


@dataclass(slots=True)
class Guard:
    """A breaker, and what went well since it was last asked: nothing comes of that before something fails."""

    breaker: Breaker = field(default_factory=Breaker)
    # By part of time.
    well: dict[int, int] = field(default_factory=dict)

    def follow(
        self, rule: BreakerSettings, cap: int, ends: JobEnds, now: float, chance: float
    ) -> None:
        """So much has ended just now."""
        part = part_of(rule, now)
        ok, failed, again = ends
        if self.breaker.state == "closed" and not failed and not again:
            self.well[part] = self.well.get(part, 0) + ok
            if len(self.well) > 2 * PARTS:
                del self.well[next(iter(self.well))]
            return
        if self.well:
            buckets = tuple((each, well, 0) for each, well in self.well.items())
            told = Tally(buckets=buckets, is_well=True)
            self.breaker = follow(self.breaker, told, rule, cap, now, 0.0)
            self.well.clear()
        tally = Tally(((part, ok, failed),), reason="it failed", is_well=ok > 0, again=again)
        self.breaker = follow(self.breaker, tally, rule, cap, now, chance)

    def turn_away(
        self, rule: BreakerSettings, cap: int, jobs: int, until: float, now: float
    ) -> None:
        """So many jobs met a host whose own breaker is open until then."""
        tally = Tally(away=jobs, away_s=until - now, reason="its host is away")
        self.breaker = follow(self.breaker, tally, rule, cap, now, 0.0)

    def is_tried(self, now: float) -> None:
        """Something starts: a breaker whose time has come is half-open from now on."""
        if self.breaker.state != "closed":
            self.breaker = half_open(self.breaker, now)
