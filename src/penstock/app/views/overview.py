"""The whole project in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Time, View

if TYPE_CHECKING:
    from penstock.store.rows import Overview


class OverviewView(View, frozen=True, kw_only=True):
    """Counts of the project, read from maintained counters: fast at any size."""

    queued: int
    running: int
    waiting: int
    quarantined: int
    active_runs: int
    paused_sources: int
    workers: int
    records: int
    next_due_at: Time | None


def overview_view(row: Overview) -> OverviewView:
    return OverviewView(**msgspec.structs.asdict(row))
