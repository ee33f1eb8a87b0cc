"""`penstock budget`: what is used of each budget, what is left, and how long that will last."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.cli.parser import Commands, add_command, add_json, whole_number
from penstock.cli.tables import key_column, text, whole
from penstock.cli.wording import count, duration, iso, local_time, until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.gates.budget import Account, Bound
    from penstock.project import Project
    from penstock.store.rows import BudgetRow, RunRow

DESCRIPTION = """\
Each budget in its present period: what is used and left of it, when it begins anew, when it will be used
up if it goes on like this, and what an accepted record costs. Budgets of single runs are shown while the
run goes on, or with --run. What a budget has stopped goes on by itself when it begins anew, or when its
bound is raised; a run that its own budget stopped is sent on with `penstock retry RUN --failed`."""
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
    *(whole("begins anew", 3), whole("used up", 3), whole("per record", 5)),
)
RUNS = 1000
NONE = "no budgets; `budget:` in penstock.yaml sets them"
OF_RUNS = "only budgets of single runs, and none is going on: penstock budget --run RUN"


def register(commands: Commands) -> None:
    parser = add_command(commands, "budget", "what is left of budgets", DESCRIPTION, EXAMPLES)
    parser.add_argument("--source", metavar="SOURCE", help="only those this source counts against")
    parser.add_argument(
        "--run", dest="run_id", type=whole_number, metavar="RUN", help="a run's own"
    )
    add_json(parser)
    parser.set_defaults(run=run)


@dataclass(frozen=True, slots=True)
class Standing:
    """A budget as it stands now; `per_record` is what one accepted record took of its measure."""

    account: Account
    zone: str
    per_record: float | None


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened, source_key

    with opened(args) as project:
        source = source_key(project, args.source)
        _ = project.source_ids  # sources that are new in the file become known to the store
        run_id = None if args.run_id is None else project.require_run(args.run_id).id
        now = project.store.now()
        found = standings(project, now, source, run_id)
        has_of_runs = _has_of_runs(project)
    if args.json:
        args.out.json_list(_shape(each, now) for each in found)
    elif found:
        args.out.table(COLUMNS, (_line(each, now) for each in found))
    else:
        args.out.line(_why_none(has_of_runs, run_id))
    return 0


def _has_of_runs(project: Project) -> bool:
    from penstock.gates.terms import rules_of

    return any(terms.of_each_run for terms in rules_of(project.settings).sources.values())


def _why_none(has_of_runs: bool, run_id: int | None) -> str:
    if run_id is not None:
        return f"run {run_id} has no budget of its own"
    return OF_RUNS if has_of_runs else NONE


def standings(
    project: Project, now: float, source: str | None = None, run_id: int | None = None
) -> list[Standing]:
    """Every budget that is configured or that a run has, those of the project first."""
    accounts = [account for account in _accounts(project, now) if _is_asked_for(account, source)]
    accounts += _of_runs(project, source, run_id)
    if run_id is not None:
        accounts = [each for each in accounts if each.bound.scope == f"run:{run_id}"]
    order = {"project": 0, "source": 1, "run": 2}
    accounts.sort(key=lambda each: (order[each.bound.scope.partition(":")[0]], each.bound.key))
    return [Standing(each, each.bound.timezone, _per_record(project, each)) for each in accounts]


def _accounts(project: Project, now: float) -> list[Account]:
    """One for each budget that begins anew by itself, used or not."""
    from penstock.gates.budget import open_account
    from penstock.gates.terms import rules_of
    from penstock.store.budgets import account_of

    rows = {(row.scope, row.measure, row.period): row for row in project.store.budgets(run_id=0)}
    found = []
    for bound in rules_of(project.settings).lasting():
        row = rows.get(bound.key)
        account = open_account(bound, now) if row is None else account_of(row)
        if account.is_over(now):
            account = open_account(bound, now)
        account.bind(bound)
        found.append(account)
    return found


def _of_runs(project: Project, source: str | None, run_id: int | None) -> list[Account]:
    from penstock.store.budgets import account_of

    if run_id is not None:
        wanted = {run_id}
    else:
        wanted = {row.id for row in project.store.runs(source, active_only=True, limit=RUNS)}
    scopes = {f"run:{each}" for each in wanted}
    rows = project.store.budgets(run_id)
    return [account_of(row) for row in rows if row.resets_at is None and row.scope in scopes]


def _is_asked_for(account: Account, source: str | None) -> bool:
    return source is None or account.bound.scope in ("project", f"source:{source}")


def _per_record(project: Project, account: Account) -> float | None:
    kind, _, name = account.bound.scope.partition(":")
    runs: Sequence[RunRow]
    if kind == "run":
        runs = [project.require_run(int(name))]
    else:
        known = name if kind == "source" else None
        every = project.store.runs(known, limit=RUNS)
        runs = [row for row in every if (row.finished_at or float("inf")) >= account.period_at]
    accepted = sum(row.inserted + row.updated + row.unchanged for row in runs)
    used: float = sum(getattr(row, account.bound.measure) for row in runs)
    return used / accepted if accepted else None


def _line(standing: Standing, now: float) -> tuple[object, ...]:
    from penstock.gates.budget import PROJECT, exhausted_at

    account = standing.account
    bound, forecast = account.bound, exhausted_at(account, now)
    scope = "the project" if bound.scope == PROJECT else bound.scope.removeprefix("source:")
    if forecast is None:
        ends = "" if account.resets_at is None else "not before that"
    else:
        ends = "it is" if forecast <= now else f"in {duration(forecast - now)}"
    each = "run" if bound.period == "run" else f"a {bound.period}"
    return (
        scope.replace("run:", "run "),
        f"{_amount(bound, bound.amount)} {each}" if each != "run" else _amount(bound, bound.amount),
        _amount(bound, account.used),
        _amount(bound, account.left),
        f"{_percent(account):.0f}",
        local_time(account.resets_at),
        ends,
        "" if standing.per_record is None else _amount(bound, standing.per_record, is_small=True),
    )


def _amount(bound: Bound, amount: float, is_small: bool = False) -> str:
    """So much of what the budget bounds."""
    match bound.measure:
        case "money":
            return f"{amount:,.4f}" if is_small else f"{_money(amount, bound.amount)} money"
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


def exhausted_words(row: BudgetRow, now: float) -> str:
    """Which budget is used up, and when what it stopped goes on."""
    from penstock.gates.budget import used_up
    from penstock.store.budgets import account_of

    anew = "" if row.resets_at is None else f", and begins anew {until(row.resets_at, now)}"
    return f"{used_up(account_of(row).bound)}{anew}; penstock budget"


def exhausted_shape(row: BudgetRow) -> dict[str, Any]:
    return {
        **_whose(row.scope),
        "measure": row.measure,
        "period": row.period,
        "bound": row.bound,
        "used": row.used,
        "resets_at": iso(row.resets_at),
    }


def _whose(scope: str) -> dict[str, Any]:
    kind, _, name = scope.partition(":")
    return {
        "source": name if kind == "source" else None,
        "run": int(name) if kind == "run" else None,
    }


def _percent(account: Account) -> float:
    return 100.0 * account.used / account.bound.amount


def _shape(standing: Standing, now: float) -> dict[str, Any]:
    from penstock.gates.budget import exhausted_at

    account, bound = standing.account, standing.account.bound
    return {
        **_whose(bound.scope),
        "measure": bound.measure,
        "period": bound.period,
        "timezone": standing.zone,
        "bound": bound.amount,
        "used": account.used,
        "reserved": account.held,
        "left": account.left,
        "percent": round(_percent(account), 1),
        "is_exhausted": account.warned >= 100 or account.left <= 0,
        "period_at": iso(account.period_at),
        "resets_at": iso(account.resets_at),
        "exhausted_at": iso(exhausted_at(account, now)),
        "per_accepted_record": standing.per_record,
    }
