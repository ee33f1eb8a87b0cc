"""Steps of the builder on a terminal, or as JSON lines."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.app.views.builder import (
        BuilderPlanView,
        BuilderStepView,
        DatasetTruthView,
        JobBudgetView,
        TargetView,
    )
    from penstock.cli.render.output import Output

FIRST_ERRORS = 3
LONGEST_ERROR = 200


def show_step(
    args: argparse.Namespace, view: BuilderStepView, *, is_one_of_many: bool = False
) -> None:
    """A line about a step as soon as it is over; of one that was run alone, all about it."""
    out: Output = args.out
    if args.json:
        out.json(view.as_json())
        return
    # Of many steps, stdout has the table of all at the end.
    say = out.note if is_one_of_many else out.line
    say(_line(view, out))
    for each in view.errors[:FIRST_ERRORS]:
        error = out.short(each.error or each.cause, LONGEST_ERROR)
        where = "" if view.run is None else f", the first: penstock jobs {each.job_id}"
        say(f"    {each.kind}: {error} ({each.jobs:,}{where} --project {args.outdir})")
    if not is_one_of_many:
        _show_budgets(out, view.budgets)
        _show_kpis(out, view.kpis)


def show_summary(args: argparse.Namespace, views: Sequence[BuilderStepView]) -> None:
    """The table of all steps, with what they used and whether the targets are met."""
    out: Output = args.out
    if args.json or not views:
        return
    out.line()
    columns = ("step", "status", "seconds", "items", "done now", "why")
    out.table(
        columns,
        [
            (
                *(view.step, view.status, f"{view.seconds:.1f}", sum(view.counts.values())),
                *(view.done, out.short(view.reason, LONGEST_ERROR)),
            )
            for view in views
        ],
    )
    _show_budgets(out, views[-1].budgets)
    _show_kpis(out, views[-1].kpis)
    for file in views[-1].outputs:
        out.line(f"  {file}")


def show_truth(args: argparse.Namespace, truth: DatasetTruthView) -> None:
    """How much of the dataset is true, and how much of what is true it has."""
    out: Output = args.out
    if args.json:
        out.json(truth.as_json())
        return
    out.line()
    out.line(
        f"{truth.companies:,} companies; {truth.expected:,} are true: precision {truth.precision:.3f}, "
        f"recall {truth.recall:.3f}, coverage {truth.coverage:.3f}"
    )
    rows = [(each.field, f"{each.precision:.3f}", f"{each.recall:.3f}") for each in truth.fields]
    out.table(("field", "precision", "recall"), rows)


def show_plan(args: argparse.Namespace, plan: BuilderPlanView) -> None:
    out: Output = args.out
    if args.json:
        out.json(plan.as_json())
        return
    run = "a new run" if plan.run is None else f"run {plan.run}"
    sample = f", a sample of {plan.sample:,}" if plan.sample else ""
    out.line(f"{plan.job} ({plan.profile}{sample}) in {plan.outdir}: {run}")
    out.table(
        ("step", "would", "network", "after"),
        [
            (each.step, each.would, "yes" if each.is_network else "", ", ".join(each.after))
            for each in plan.steps
        ],
    )
    _show_budgets(out, plan.budgets)
    out.line("nothing was fetched, and nothing was written")


def _line(view: BuilderStepView, out: Output) -> str:
    counts = ", ".join(f"{number:,} {name}" for name, number in view.counts.items())
    why = f": {out.short(view.reason, 600)}" if view.reason else ""
    return f"{view.step} {view.status} in {view.seconds:.1f} s ({counts or 'no items'}){why}"


def _show_budgets(out: Output, budgets: Iterable[JobBudgetView]) -> None:
    rows = [
        (each.name, _number(each.used), _number(each.bound), f"{each.percent:g} %")
        for each in budgets
        if each.bound is not None
    ]
    if rows:
        out.line()
        out.table(("budget", "used", "bound", "percent"), rows)


def _show_kpis(out: Output, kpis: Iterable[TargetView]) -> None:
    rows = [(each.name, _number(each.target), _number(each.value), _verdict(each)) for each in kpis]
    if rows:
        out.line()
        out.table(("target", "wanted", "is", "verdict"), rows)


def _verdict(kpi: TargetView) -> str:
    if kpi.is_met:
        return "met"
    return "missed" if kpi.is_asked else "not asked for"


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:,.2f}".rstrip("0").rstrip(".")
