"""Budgets: what is used and left of each, and how long that will last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.app.noun import Noun
from penstock.app.paging import USUAL, each_item, page_within
from penstock.app.views.budgets import (
    BudgetView,
    ExhaustedBudgetView,
    budget_view,
    exhausted_view,
)
from penstock.app.views.view import Page
from penstock.gates.budget import BudgetUsage, exhausted_at, open_account, used_up
from penstock.gates.project_terms import rules_of
from penstock.project import Project
from penstock.store.budgets import account_of

# The newest runs that say what a record costs, and the most that are active.
RUNS = 1000
_ORDER = {"project": 0, "source": 1, "run": 2}


class Budgets(Noun):
    """The budgets of the project, of its sources and of single runs."""

    def list(
        self,
        *,
        source: str | None = None,
        run: int | None = None,
        cursor: str | None = None,
        limit: int = USUAL,
    ) -> Page[BudgetView]:
        """Every budget in its present period: those of the project, of sources, of runs that are active.

        With `source`, those that it counts against; with `run`, that run's own.
        """
        project = self._project
        key = project.source_key(source)
        _ = project.source_ids  # sources that are new in the file become known to the store
        if run is not None:
            project.require_run(run)
        now = self._store.now()

        found = accounts(project, now, key, run)
        page = page_within(found, cursor, limit, _itself, _place, tuple[int, str, str, str])
        costs = _per_record(project, page.items)
        views = [
            budget_view(account, exhausted_at(account, now), cost)
            for account, cost in zip(page.items, costs, strict=True)
        ]
        return Page(items=views, next=page.next)

    def each(self, *, source: str | None = None, run: int | None = None) -> Iterator[BudgetView]:
        """Iterate over all of them, page by page."""
        return each_item(
            lambda cursor, limit: self.list(source=source, run=run, cursor=cursor, limit=limit)
        )

    def exhausted(self) -> Sequence[ExhaustedBudgetView]:
        """The exhausted ones, by the limits that applied when a job was last refused."""
        rows = self._store.budgets.exhausted()
        return [exhausted_view(row, used_up(account_of(row).bound)) for row in rows]

    def are_of_runs(self) -> bool:
        """Whether some source gives each of its runs a budget of its own."""
        rules = rules_of(self._project.settings)
        return any(terms.of_each_run for terms in rules.sources.values())


def _itself(account: BudgetUsage) -> BudgetUsage:
    return account


def accounts(
    project: Project, now: float, source: str | None = None, run_id: int | None = None
) -> list[BudgetUsage]:
    """Every budget that is configured or that a run has, those of the project first."""
    found = _of_runs(project, source, run_id)
    if run_id is None:
        found += _lasting(project, now, source)
    return sorted(found, key=_place)


def _place(account: BudgetUsage) -> tuple[int, str, str, str]:
    scope, measure, period = account.bound.key
    return _ORDER[scope.partition(":")[0]], scope, measure, period


def _lasting(project: Project, now: float, source: str | None) -> Iterator[BudgetUsage]:
    """One for each budget that resets by itself, used or not; with a source, those that it counts against."""
    found = project.connection.budgets.all(run_id=0)
    rows = {(row.scope, row.measure, row.period): row for row in found}
    for bound in rules_of(project.settings).lasting():
        if source is not None and bound.scope not in ("project", f"source:{source}"):
            continue
        row = rows.get(bound.key)
        account = open_account(bound, now) if row is None else account_of(row)
        if account.is_over(now):
            account = open_account(bound, now)
        account.bind(bound)
        yield account


def _of_runs(project: Project, source: str | None, run_id: int | None) -> list[BudgetUsage]:
    store = project.connection
    if run_id is not None:
        wanted = {run_id}
    else:
        wanted = {row.id for row in store.runs.newest(source, active_only=True, limit=RUNS)}
    scopes = {f"run:{each}" for each in wanted}
    rows = store.budgets.all(run_id)
    return [account_of(row) for row in rows if row.resets_at is None and row.scope in scopes]


def _per_record(project: Project, budgets: Sequence[BudgetUsage]) -> Iterator[float | None]:
    """What one accepted record has cost of each budget; None where there was none."""
    store = project.connection
    ids = store.sources.ids()
    named = [each.bound.scope.partition(":") for each in budgets]
    of_sources = [
        (ids.get(name, 0), each.period_at)
        for (kind, _, name), each in zip(named, budgets, strict=True)
        if kind == "source"
    ]
    found = iter(store.budgets.used_by_sources(of_sources, RUNS) if of_sources else [])
    for (kind, _, name), each in zip(named, budgets, strict=True):
        if kind == "source":
            use = next(found)
        elif kind == "run":
            use = store.budgets.used_by_run(int(name))
        else:
            use = store.budgets.used_since(each.period_at, RUNS)
        used: float = getattr(use, each.bound.measure)
        yield used / use.accepted if use.accepted else None
