"""Budgets as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.app.views.view import Hidden, Time, View

if TYPE_CHECKING:
    from penstock.gates.budget import BudgetUsage
    from penstock.store.rows import BudgetRow


class BudgetView(View, frozen=True, kw_only=True):
    """A budget in its present period; of the whole project if it has neither a source nor a run.

    `exhausted_at` is when it runs out at the current rate, None if not before it resets;
    `per_accepted_record` what one accepted record took of its measure.
    """

    source: str | None
    run: int | None
    measure: str
    period: str
    timezone: str
    bound: float
    used: float
    reserved: float
    left: float
    percent: float
    is_exhausted: bool
    period_at: Time
    resets_at: Time | None
    exhausted_at: Time | None
    per_accepted_record: float | None


class ExhaustedBudgetView(View, frozen=True, kw_only=True):
    """An exhausted budget; `text` names it for people."""

    source: str | None
    run: int | None
    measure: str
    period: str
    bound: float
    used: float
    resets_at: Time | None
    scope: Hidden[str]
    text: Hidden[str]


def budget_view(
    account: BudgetUsage, exhausted_at: float | None, per_record: float | None
) -> BudgetView:
    bound = account.bound
    return BudgetView(
        **_whose(bound.scope),
        measure=bound.measure,
        period=bound.period,
        timezone=bound.timezone,
        bound=bound.amount,
        used=account.used,
        reserved=account.held,
        left=account.left,
        percent=round(100.0 * account.used / bound.amount, 1),
        is_exhausted=account.warned >= 100 or account.left <= 0,
        period_at=account.period_at,
        resets_at=account.resets_at,
        exhausted_at=exhausted_at,
        per_accepted_record=per_record,
    )


def exhausted_view(row: BudgetRow, text: str) -> ExhaustedBudgetView:
    return ExhaustedBudgetView(
        **_whose(row.scope),
        measure=row.measure,
        period=row.period,
        bound=row.bound,
        used=row.used,
        resets_at=row.resets_at,
        scope=row.scope,
        text=text,
    )


def _whose(scope: str) -> dict[str, Any]:
    kind, _, name = scope.partition(":")
    return {
        "source": name if kind == "source" else None,
        "run": int(name) if kind == "run" else None,
    }
