"""The budgets of a job, each with what its run has used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.app.views.builder import JobBudgetView
from penstock.builder.job_file import Budgets

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.rows import RunRow


def unused_budgets(budgets: Budgets) -> list[JobBudgetView]:
    """The budgets of a run that has not begun."""
    return [_view(name, getattr(budgets, name), 0.0) for name in Budgets.__struct_fields__]


def budget_views(
    project: Nouns, run: RunRow, budgets: Budgets, ram_mb: float
) -> list[JobBudgetView]:
    """Those of a run: requests and bytes as the ledger of all hosts has them, its age, and memory here.

    Beside them the other budgets that its requests count against, such as those of the source by day.
    """
    ledger = {
        each.measure: each.used
        for each in project.budgets.each(run=run.id)
        if each.run is not None and each.period == "run"
    }
    minutes = ((run.finished_at or project.now()) - run.created_at) / 60
    return [
        _view("max_http_requests", budgets.max_http_requests, ledger.get("requests", run.requests)),
        _view("max_http_bytes", budgets.max_http_bytes, ledger.get("bytes", run.bytes)),
        _view("time_budget_min", budgets.time_budget_min, round(minutes, 3)),
        _view("ram_mb", budgets.ram_mb, round(ram_mb, 1)),
        *(
            JobBudgetView(
                name=f"{each.measure} a {each.period}",
                bound=each.bound,
                used=each.used,
                percent=each.percent,
                is_exhausted=each.is_exhausted,
                resets_at=each.resets_at,
            )
            for each in project.budgets.each(source=run.source)
            if each.run is None
        ),
    ]


def _view(name: str, bound: float, used: float) -> JobBudgetView:
    return JobBudgetView(
        name=name,
        bound=bound or None,
        used=int(used) if used == int(used) else used,
        percent=round(100 * used / bound, 1) if bound else None,
        is_exhausted=bool(bound) and used >= bound,
        resets_at=None,
    )
