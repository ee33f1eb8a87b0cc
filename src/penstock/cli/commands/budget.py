"""`penstock budget`: what is used of each budget, what is left, and how long that will last."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.parser import Commands, add_command, add_json, whole_number
from penstock.cli.render.tables import key_column, text, whole
from penstock.cli.render.wording import count, duration, local_time, until

if TYPE_CHECKING:
    from penstock.app.views.budgets import BudgetView, ExhaustedBudgetView

DESCRIPTION = """\
Each budget in its current period: what is used and left, when it resets, when it runs out at the current
rate, and what an accepted record costs. A run's own budget is shown while the run is active, or with --run.
Work that a budget has stopped continues when the budget resets or its limit is raised. Continue a run that
its own budget stopped with `penstock retry RUN --failed`."""
EXAMPLES = """\
  penstock budget
  penstock budget --source acme.com
  penstock budget --run 12 --json"""
COLUMNS = (
    *(
        key_column("of", least=12),
        text("budget", 0, 14),
        whole("used", 1),
        whole("left"),
        whole("%", 2),
    ),
    *(whole("resets", 3), whole("runs out", 3), whole("per record", 5)),
)
NONE = "no budgets; `budget:` in penstock.yaml sets them"
OF_RUNS = "no active run has a budget; for a run that has ended: penstock budget --run RUN"


def register(commands: Commands) -> None:
    parser = add_command(commands, "budget", DESCRIPTION, EXAMPLES)
    parser.add_argument("--source", metavar="SOURCE", help="only those this source counts against")
    parser.add_argument(
        "--run", dest="run_id", type=whole_number, metavar="RUN", help="a run's own"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = list(project.budgets.each(source=args.source, run=args.run_id))
        now, are_of_runs = project.now(), project.budgets.are_of_runs()
    if args.json:
        args.out.json_list(each.as_json() for each in found)
    elif found:
        args.out.table(COLUMNS, (_line(each, now) for each in found))
    elif args.run_id is not None:
        args.out.line(f"run {args.run_id} has no budget of its own")
    else:
        args.out.line(OF_RUNS if are_of_runs else NONE)
    return 0


def _line(budget: BudgetView, now: float) -> tuple[object, ...]:
    cost, each = budget.per_accepted_record, f" a {budget.period}"
    return (
        f"run {budget.run}" if budget.run is not None else budget.source or "the project",
        _amount(budget, budget.bound) + ("" if budget.period == "run" else each),
        _amount(budget, budget.used),
        _amount(budget, budget.left),
        f"{100.0 * budget.used / budget.bound:.0f}",
        local_time(budget.resets_at),
        _end(budget, now),
        "" if cost is None else _amount(budget, cost, is_small=True),
    )


def _end(budget: BudgetView, now: float) -> str:
    if budget.exhausted_at is None:
        return "" if budget.resets_at is None else "after reset"
    return (
        "exhausted" if budget.exhausted_at <= now else f"in {duration(budget.exhausted_at - now)}"
    )


def _amount(budget: BudgetView, amount: float, is_small: bool = False) -> str:
    """So much of what the budget bounds."""
    match budget.measure:
        case "money":
            return f"{amount:,.4f}" if is_small else f"{_money(amount, budget.bound)} money"
        case "seconds":
            return f"{amount:.2f} s" if is_small and amount < 10 else duration(amount)
        case "bytes":
            return _size(amount)
    return f"{amount:,.2f}" if is_small else count(round(amount), "request")


def _money(amount: float, bound: float) -> str:
    """Two digits, and more where a hundredth is a good part of the bound."""
    return f"{amount:,.2f}" if bound >= 1 else f"{amount:,.4f}"


def _size(amount: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:,.0f} {unit}" if unit == "B" else f"{amount:,.1f} {unit}"
        amount /= 1000
    return ""


def exhausted_words(budget: ExhaustedBudgetView, now: float) -> str:
    """Which budget is exhausted, and when what it stopped continues."""
    reset = "" if budget.resets_at is None else f"; it resets {until(budget.resets_at, now)}"
    return f"{budget.text}{reset}; penstock budget"
