"""Figures: what a simulation comes to."""

from __future__ import annotations

from collections import Counter

import msgspec


class Counts(msgspec.Struct, kw_only=True):
    """What is counted of each source, and added up over all of them."""

    starts: int = 0
    probes: int = 0
    skipped: int = 0
    denied: int = 0
    missed: int = 0
    completed: int = 0
    partial: int = 0
    failed: int = 0
    cancelled: int = 0
    requests: int = 0
    freshness_breaches: int = 0
    deadline_breaches: int = 0
    trips: int = 0


class SourceFigures(Counts):
    """One source: what its ticks came to, how its runs ended, and what promises were broken."""

    source: str
    stale_hours: float = 0.0
    cadence: str = ""
    moves: list[str] = []
    is_assumed: bool = False


class BudgetFigures(msgspec.Struct):
    """One budget: the most that was used in one period, each day's peak, and when it was used up."""

    budget: str
    scope: str
    measure: str
    period: str
    bound: float
    most_used: float = 0.0
    by_day: list[float] = []
    exhausted_at: list[float] = []

    @property
    def name(self) -> str:
        """What it is a budget of, whatever its amount: that may be what was changed."""
        return self.budget.partition(" ")[2].removeprefix("of ")

    @property
    def amount(self) -> str:
        return self.budget.partition(" ")[0]


class HostFigures(msgspec.Struct):
    """One host that the configuration names: the sources whose requests it gets, and how often its breaker
    opened."""

    host: str
    sources: list[str] = []
    trips: int = 0


class NotSimulated(msgspec.Struct, frozen=True):
    """Something that is not simulated, in words; of a schedule of a source, or of neither."""

    source: str
    schedule: str
    words: str


class Figures(Counts):
    """What a project would do in a number of days. `events` is how many steps the simulation took."""

    began_at: float
    days: int
    seed: int
    slots: int
    bytes: float = 0.0
    retries: int = 0
    quarantined: int = 0
    backlog_peak: int = 0
    backlog_at_end: int = 0
    worker_use: float = 0.0
    worker_use_peak: float = 0.0
    starts_by_day: list[int] = []
    backlog_by_day: list[int] = []
    use_by_day: list[float] = []
    budgets: list[BudgetFigures] = []
    hosts: list[HostFigures] = []
    sources: list[SourceFigures] = []
    left_out: list[NotSimulated] = []
    events: int = 0
    is_cut_short: bool = False


def add_up(figures: Figures) -> None:
    """The sums over all sources."""
    totals: Counter[str] = Counter()
    for source in figures.sources:
        for name in Counts.__struct_fields__:
            totals[name] += getattr(source, name)
    for name in Counts.__struct_fields__:
        setattr(figures, name, totals[name])
