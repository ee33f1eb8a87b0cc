"""Budgets as burn-down charts: what was left hour by hour, and what will be at the present rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.web.dashboard.charts import Chart, Series
from penstock.web.dashboard.words import moment

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.budgets import BudgetView

HOUR_S = 3600.0
# Measures of budgets that are summed by the hour; what others have used is known for now alone.
SUMMED = {"requests": "fetches", "bytes": "bytes"}
# A page has so many charts; the list beside them has all budgets.
CHARTS = 6


def burn_downs(project: Project, budgets: list[BudgetView], now: float) -> list[Chart]:
    """A chart for each of the first budgets that reset by themselves."""
    lasting = [each for each in budgets if each.resets_at is not None]
    return [burn_down(project, each, now) for each in lasting[:CHARTS]]


def burn_down(project: Project, budget: BudgetView, now: float) -> Chart:
    past = _left_by_hour(project, budget, now)
    coming = _forecast(budget, now)
    x = sorted({*past, *coming})
    whose = budget.source or "the project"
    return Chart(
        title=f"{budget.measure.capitalize()} of {whose} left this {budget.period}: {_outlook(budget)}",
        kind="lines",
        x=x,
        series=[
            Series("left", "accent", [past.get(at) for at in x]),
            Series("forecast", "soft", [coming.get(at) for at in x]),
        ],
    )


def _left_by_hour(project: Project, budget: BudgetView, now: float) -> dict[float, float]:
    """What was left at the end of each hour of the period, and what is left now."""
    found = {budget.period_at: budget.bound}
    measure = SUMMED.get(budget.measure)
    if measure is not None:
        series = project.figures.series(
            measure, budget.source, since=budget.period_at, until=now, step="hour"
        )
        used = 0.0
        for at, amount in series.points:
            used += amount
            if budget.period_at < at + HOUR_S < now:
                # Sums lag behind the account, and may have what its period has not.
                found[at + HOUR_S] = max(budget.bound - used, budget.left)
    return {**found, now: budget.left}


def _forecast(budget: BudgetView, now: float) -> dict[float, float]:
    """From what is left now to nothing, or to what will be left when it resets."""
    resets_at = budget.resets_at or now
    if budget.is_exhausted or budget.left <= 0:
        return {now: 0.0, resets_at: 0.0}
    if budget.exhausted_at is not None:
        return {now: budget.left, budget.exhausted_at: 0.0}
    rate = budget.used / max(now - budget.period_at, 1.0)
    return {now: budget.left, resets_at: max(0.0, budget.left - rate * (resets_at - now))}


def _outlook(budget: BudgetView) -> str:
    if budget.is_exhausted:
        return f"exhausted until {moment(budget.resets_at)}"
    if budget.exhausted_at is not None:
        return f"runs out {moment(budget.exhausted_at)}"
    return f"lasts until {moment(budget.resets_at)}"
