"""Backfills as front ends see them: what one would fetch, and what that would take."""

from __future__ import annotations

import msgspec

from penstock.app.views.view import Hidden, Time, View
from penstock.jobs.run import RunOptions

__all__ = ["BackfillPlan", "GapView", "RunOptions"]


class GapView(View, frozen=True, kw_only=True):
    """A stretch of time of one partition that is not ingested; `to` is the first moment after it."""

    partition: str
    start_at: Time = msgspec.field(name="from")
    end_at: Time = msgspec.field(name="to")


class BackfillPlan(View, frozen=True, kw_only=True):
    """What a backfill would fetch, and what that would take. Nothing is started.

    `expected` is how many units (windows times partitions) the range has, `units` how many of them would be
    fetched: fewer, if only what is missing is asked for. `calls` and `seconds` are estimates, and `basis`
    says what they rest on: earlier runs, the source's rate, or an assumption. `budget` says what they mean
    for the source's own budget, a line for each bound. `missing` are the first 1,000 gaps, if only those are
    asked for. Not in the JSON: the options that its run would have.
    """

    source: str
    start_at: Time = msgspec.field(name="from")
    end_at: Time = msgspec.field(name="to")
    window_s: float
    partitions: list[str]
    expected: int
    units: int
    calls: int
    seconds: float
    basis: str
    budget: list[str]
    missing: list[GapView]
    options: Hidden[RunOptions]
