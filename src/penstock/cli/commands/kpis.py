"""`penstock kpis`: five numbers that say how well work recovers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.parser import Commands, add_command, add_json, whole_number
from penstock.cli.render.tables import text, whole
from penstock.cli.render.wording import count, duration, local_time

if TYPE_CHECKING:
    from penstock.app.views.kpis import KpiView

DESCRIPTION = """\
How well work recovers, from runs and the journal: runs completed without a restart, how long interrupted
jobs waited, duplicates per million saves, throttling incidents a week, and what people had to do."""
EXAMPLES = """\
  penstock kpis
  penstock kpis --days 7 --source acme.com
  penstock kpis --json"""
LONGEST_DAYS = 36_500
COLUMNS = (text("number", 0, 24), whole("value"), text("counted over", 1))


def register(commands: Commands) -> None:
    parser = add_command(commands, "kpis", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--days", type=_days, default=30, metavar="N", help="of the last N days (30)"
    )
    parser.add_argument("--source", metavar="SOURCE", help="only this source's")
    add_json(parser)
    parser.set_defaults(run=run)


def _days(text: str) -> int:
    days = whole_number(text)
    if days > LONGEST_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is more than a hundred years ({LONGEST_DAYS})")
    return days


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        report = project.kpis.report(days=args.days, source=args.source)
    if args.json:
        args.out.json(report.as_json())
        return 0
    args.out.table(COLUMNS, (_line(name, each) for name, each in report.kpis.items()))
    if report.journal_since is not None:
        args.out.note(f"the journal was read from {local_time(report.journal_since)} on")
    return 0


def _line(name: str, kpi: KpiView) -> tuple[object, ...]:
    of = kpi.of if kpi.counted != 1 else kpi.of.replace("runs ", "run ").replace("jobs ", "job ")
    return (name.replace("_", " "), _value(kpi), count(kpi.counted, of, of))


def _value(kpi: KpiView) -> str:
    if kpi.value is None:
        return "no data"
    if kpi.unit == "s":
        return duration(kpi.value)
    number = f"{kpi.value:,.1f}".removesuffix(".0")
    return f"{number} %" if kpi.unit == "%" else f"{number} {kpi.unit}"
