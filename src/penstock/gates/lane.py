"""A lane is a source's queue: what waits in it, what of it runs, and what holds it back, at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from penstock.gates.onboarding import NOTHING_REQUIRED, ComplianceTerms, Onboarding
from penstock.settings.opening_hours import OpeningHours
from penstock.settings.values import BreakerSettings

UNLIMITED = 1 << 30

# What a job takes up while it runs: a slot at the source, one of the few that backfills have there, or
# none of them, because it only works on what was fetched already.
Slot = Literal["page", "background", "candidate"]


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """What the configuration allows a source: jobs that touch it at once, post-processing at once.

    `background` is the share of its concurrency that backfills may have. Without a `breaker` it is never
    left alone for failing.
    """

    concurrency: int = 4
    candidates: int = 64
    weight: float = 1.0
    rate_per_s: float | None = None
    background: float = 0.25
    adaptive: bool = True
    windows: OpeningHours | None = None
    breaker: BreakerSettings | None = field(default_factory=BreakerSettings)
    compliance: ComplianceTerms = NOTHING_REQUIRED


class Head(msgspec.Struct, frozen=True, gc=False):
    """The queued jobs of one stage of one run; `rank` is that of the first."""

    run_id: int
    stage: str
    unit: Literal["run", "page", "candidate"]
    depth: int
    rank: float = 0.0
    cpu: float = 0.0
    memory_mb: float = 0.0
    # What jobs of its kind of run take up, unless they are candidates.
    run_slot: Slot = "page"

    @property
    def slot(self) -> Slot:
        return "candidate" if self.unit == "candidate" else self.run_slot


class BreakerFacts(msgspec.Struct, frozen=True, gc=False):
    """A source's breaker: when it may be tried, by how many jobs at once, and until when it counts."""

    state: str
    opens_at: float
    ramp: int
    counts_until: float = 0.0


class Lane(msgspec.Struct, frozen=True, gc=False):
    """A source with work that could start, as it is at this moment.

    `level` is how many jobs at once the source bears at present, where that is known to be less than
    what the configuration allows. `ahead` is how many more a worker may claim than may be under way: they
    wait with it until one of its own has ended, and count as running meanwhile.
    """

    source_id: int
    heads: tuple[Head, ...]
    limits: LaneLimits = LaneLimits()
    is_paused: bool = False
    cooldown_until: float = 0.0
    running: int = 0
    running_candidates: int = 0
    next_place_at: float = 0.0
    running_background: int = 0
    is_held: bool = False
    breaker: BreakerFacts | None = None
    level: float | None = None
    onboarding: Onboarding | None = None
    ahead: int = 0


class Closed(msgspec.Struct, frozen=True, gc=False):
    """A gate that holds a lane back; `opens_at` is None when a person or a finished job opens it."""

    gate: str
    opens_at: float | None = None


class Allowance(msgspec.Struct, frozen=True, gc=False):
    """How many jobs of each kind a lane may start now; background ones count as pages, too."""

    pages: int
    candidates: int
    background: int = 0


_USUAL = LaneLimits()


def limits_for(source_id: int, limits: Mapping[int, LaneLimits]) -> LaneLimits:
    """A source that is no longer configured still finishes its work, at the default limits."""
    return limits.get(source_id, _USUAL)
