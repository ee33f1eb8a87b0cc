"""A project at one moment, as front ends see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.alerts import AlertView
from penstock.app.views.breakers import BreakerView
from penstock.app.views.budgets import ExhaustedBudgetView
from penstock.app.views.outlook import SourceOutlook
from penstock.app.views.overview import OverviewView
from penstock.app.views.releases import RunningReleaseView
from penstock.app.views.runs import RunView
from penstock.app.views.schedules import CadenceView
from penstock.app.views.sources import BreachView, HoldView, NextRunView, SourceView
from penstock.app.views.view import Hidden, Time, View
from penstock.app.views.workers import LeaderView, NotLoadedView, StaleWorkerView, WorkerView
from penstock.errors import Remedy

if TYPE_CHECKING:
    from penstock.store.replays import Undecided


class UndecidedView(View, frozen=True, kw_only=True):
    """A replay that waits to be committed or dropped; or a commit or undo that was interrupted half-way.

    It is dropped by itself at `drops_at`. `remedies` are what you can do about it, the first of them first.
    """

    run_id: int = msgspec.field(name="run")
    source: str
    kind: str
    of_run_id: int | None = msgspec.field(name="of_run")
    is_cut_short: bool
    finished_at: Time
    drops_at: Time | None
    remedies: Hidden[tuple[Remedy, ...]]

    @property
    def is_undo(self) -> bool:
        return self.kind == "undo"


class StatusView(View, frozen=True, kw_only=True):
    """What is going on in a project.

    `runs` are the newest active ones, `next_runs` the first that are due; `overview` has all of them in
    numbers. `release` is what this environment runs, and who runs something else. Not in the JSON: the
    outlook of each source, the sources that `cadence: auto` has given up, and the next runs.
    """

    project: str
    environment: str | None
    now: Time = msgspec.field(name="at")
    overview: OverviewView
    release: RunningReleaseView
    workers: list[WorkerView]
    scheduler: LeaderView | None
    runs: list[RunView]
    sources: list[SourceView]
    closed_hosts: dict[str, Time]
    hosts_outside: dict[str, Time]
    breakers: list[BreakerView]
    exhausted_budgets: list[ExhaustedBudgetView]
    holds: list[HoldView]
    breaches: list[BreachView]
    undecided: list[UndecidedView]
    stale_workers: list[StaleWorkerView]
    not_loaded: list[NotLoadedView]
    alerts: list[AlertView]
    outlooks: Hidden[dict[str, SourceOutlook]]
    given_up: Hidden[list[CadenceView]]
    next_runs: Hidden[list[NextRunView]]

    def stopped(self, by: str) -> list[SourceView]:
        """The sources that this gate stops: `paused`, `degraded`, `cooldown`, …"""
        return [
            each
            for each in self.sources
            if each.key in self.outlooks and self.outlooks[each.key].stop(by) is not None
        ]


def undecided_view(found: Undecided, staged_s: float) -> UndecidedView:
    return UndecidedView(
        run_id=found.run_id,
        source=found.source,
        kind="undo" if found.is_undo else "replay",
        of_run_id=found.of_run_id,
        is_cut_short=found.is_cut_short,
        finished_at=found.finished_at,
        drops_at=None if found.is_cut_short else found.finished_at + staged_s,
        remedies=_remedies(found),
    )


def _remedies(found: Undecided) -> tuple[Remedy, ...]:
    if found.is_undo:
        return (Remedy("runs.undo", found.of_run_id),)
    acts = ("commit",) if found.is_cut_short else ("diff", "commit", "drop")
    return tuple(Remedy(f"replays.{act}", found.run_id) for act in acts)
