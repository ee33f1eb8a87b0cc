"""`python -m bench`: measure, print the table, write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from bench import machine, plots, profiles, report
from bench.profiles import Profile
from bench.rounds import REPOSITORY, SCRATCH, Failed, Measured, measure
from bench.table import Row, Scale
from bench.workloads import WORKLOADS, rows

DOCS = REPOSITORY / "docs"

Tables = dict[str, list[Row]]


def main() -> int:
    asked = _arguments()
    console = Console(highlight=False)
    facts = machine.facts(SCRATCH)
    for name, value in facts.items():
        console.print(f"[dim]{name}: {value}[/dim]")
    if machine.is_busy():
        console.print("[yellow]The machine is busy: these figures will mislead.[/yellow]")
    try:
        measured = _measure(asked, console)
    except Failed as failure:
        console.print(str(failure), markup=False, style="red")
        return 1
    facts |= machine.moment("when it ended", SCRATCH)
    tables = _tables(measured)
    report.show(tables, console)
    try:
        found = [
            profile
            for each in measured
            for profile in profiles.of_missed(each.workload, rows(each), console.print)
        ]
    except Failed as failure:
        # What was measured is kept.
        console.print(str(failure), markup=False, style="red")
        found = []
    report.show_profiles(found, console)
    _keep(asked, tables, measured, facts, found)
    return 0


def _measure(asked: argparse.Namespace, console: Console) -> list[Measured]:
    scale = Scale(asked.quick, asked.large, asked.postgres_long)
    names = asked.only or list(WORKLOADS)
    return [measure(WORKLOADS[name](scale), asked.rounds, console.print) for name in names]


def _tables(measured: list[Measured]) -> Tables:
    """On SQLite and on Postgres: two tables, because their figures don't compare line by line."""
    found: Tables = {"The table": [], "The table on Postgres": []}
    for each in measured:
        title = "The table on Postgres" if each.workload.is_on_postgres else "The table"
        found[title] += rows(each)
    return {title: lines for title, lines in found.items() if lines}


def _keep(
    asked: argparse.Namespace,
    tables: Tables,
    measured: list[Measured],
    facts: dict[str, str],
    found: list[Profile],
) -> None:
    if asked.json:
        report.write_json(asked.json, tables, measured, facts, found)
    if asked.quick:
        return
    plots.draw(measured, DOCS)
    if asked.only:
        # Figures of another moment: the page says which they are, where, and how busy the machine was.
        report.update_page(DOCS / "benchmarks.md", tables, measured, facts, found)
    else:
        report.write_page(DOCS / "benchmarks.md", tables, measured, facts, found)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure Penstock beside its peers; writes docs/benchmarks.md.",
    )
    parser.add_argument("--quick", action="store_true", help="a small run that writes no page")
    parser.add_argument("--large", action="store_true", help="claims from 10 million queued too")
    parser.add_argument(
        "--postgres-long", action="store_true", help="hold a snapshot for three minutes, not 30 s"
    )
    parser.add_argument(
        "--rows",
        "--only",
        dest="only",
        action="extend",
        type=_names,
        metavar="NAME,…",
        help="these workloads, and their rows of the page; others stay. " + _known(),
    )
    parser.add_argument("--rounds", type=int, help="interleaved rounds (default 5; quick 1)")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    asked = parser.parse_args()
    if asked.rounds is not None and asked.rounds < 1:
        parser.error("--rounds is at least 1")
    asked.rounds = asked.rounds or (1 if asked.quick else 5)
    return asked


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown) or text!r}. {_known()}")
    return names


def _known() -> str:
    return "There are " + ", ".join(WORKLOADS)


if __name__ == "__main__":
    sys.exit(main())
