"""What a backfill would take: by what earlier runs of the source took, and what its budget makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.counting import count
from penstock.gates.decide import background_of
from penstock.gates.lane import Lane, LaneLimits
from penstock.jobs.run import RunKind
from penstock.project.backfills import require_settings

if TYPE_CHECKING:
    from penstock.settings import SourceSettings
    from penstock.store.rows import RunRow

# What a unit is taken to need where nothing was measured.
ASSUMED_S = 1.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """What so many units would take; `basis` says how that is known."""

    units: int
    calls: float
    seconds: float
    basis: str


def estimate(source: SourceSettings, units: int, runs: Sequence[RunRow], now: float) -> Estimate:
    """What so many units would take, by what earlier runs of the source took, newest first."""
    settings = require_settings(source)
    limits = LaneLimits(source.limits.concurrency, background=settings.share)
    places = background_of(Lane(0, (), limits))
    per_unit_s, basis = _measured(runs, source.limits.concurrency / places, now)
    if per_unit_s is None:
        per_unit_s = ASSUMED_S / places
        at_once = f"{places} at once" if places > 1 else "one at a time"
        basis = f"assumed: {ASSUMED_S:g} s a unit, {at_once}"
    calls, seconds = units * settings.calls_per_unit, units * per_unit_s
    rate_per_s = source.limits.rate_per_s
    if rate_per_s and calls / rate_per_s > seconds:
        seconds, basis = calls / rate_per_s, "by the source's rate"
    return Estimate(units, calls, seconds, basis)


def _measured(runs: Sequence[RunRow], slower: float, now: float) -> tuple[float | None, str]:
    """Seconds a unit, from backfills if there were any, else from live runs, which have more places."""
    for kinds, factor in (
        ((RunKind.BACKFILL,), 1.0),
        ((RunKind.FULL, RunKind.INCREMENTAL), slower),
    ):
        known = [row for row in runs if row.kind in kinds and row.pages_done]
        took = [
            (row.finished_at or now) - row.started_at for row in known if row.started_at is not None
        ]
        if took:
            names = ", ".join(str(row.id) for row in known[:3])
            per_unit_s = sum(took) / sum(row.pages_done for row in known) * factor
            return per_unit_s, f"measured: {'run' if len(known) == 1 else 'runs'} {names}"
    return None, ""


def budget_lines(source: SourceSettings, told: Estimate) -> list[str]:
    """What the source's own budget makes of it."""
    needed = {"requests": told.calls, "seconds": told.seconds}
    if source.cost.request is not None:
        needed["money"] = told.calls * source.cost.request
    lines = []
    for bound in source.budget.bounds:
        if bound.measure not in needed:
            continue
        share = needed[bound.measure] / bound.amount
        what = f"{needed[bound.measure]:,.10g} of {bound.amount:,.10g} {bound.measure}"
        if bound.period == "run":
            enough = "enough" if share <= 1 else "not enough: the run would end partial"
            lines.append(f"{what} a run: {enough}")
        else:
            periods = max(1, -(-needed[bound.measure] // bound.amount))
            lines.append(f"{what} a {bound.period}: at least {count(int(periods), bound.period)}")
    return lines
