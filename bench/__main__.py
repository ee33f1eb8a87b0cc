"""`python -m bench`: measure, print the table, write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from bench import machine, plots, report
from bench.rounds import REPOSITORY, SCRATCH, Failed, Measured, measure
from bench.workloads import WORKLOADS, Row, Scale, rows

DOCS = REPOSITORY / "docs"


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
    table = [row for each in measured for row in rows(each)]
    report.show(table, console)
    _keep(asked, table, measured, facts)
    return 0


def _measure(asked: argparse.Namespace, console: Console) -> list[Measured]:
    scale = Scale(asked.quick, asked.large)
    names = asked.only or list(WORKLOADS)
    return [measure(WORKLOADS[name](scale), asked.rounds, console.print) for name in names]


def _keep(
    asked: argparse.Namespace, table: list[Row], measured: list[Measured], facts: dict[str, str]
) -> None:
    if asked.json:
        report.write_json(asked.json, table, measured, facts)
    # The page holds one whole run: figures of different moments don't belong in one table.
    if not asked.quick and not asked.only:
        plots.draw(measured, DOCS)
        report.write_page(DOCS / "benchmarks.md", table, measured, facts, asked.rounds)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure Penstock beside its peers; writes docs/benchmarks.md after a whole run.",
    )
    parser.add_argument("--quick", action="store_true", help="a small run that writes no page")
    parser.add_argument("--large", action="store_true", help="claims from 10 million queued too")
    parser.add_argument(
        "--only", action="append", choices=list(WORKLOADS), help="this workload; may be repeated"
    )
    parser.add_argument("--rounds", type=int, help="interleaved rounds (default 5; quick 1)")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    asked = parser.parse_args()
    asked.rounds = asked.rounds or (1 if asked.quick else 5)
    return asked


if __name__ == "__main__":
    sys.exit(main())
