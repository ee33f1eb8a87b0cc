"""The figures as text: a table for the terminal, and the measured part of docs/benchmarks.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.rounds import Measured
from bench.table import Row

MARKER = "<!-- Everything below this line is written by `make bench`. -->"
COLUMNS = ("work", "Penstock", "peer", "ratio", "target", "")


def show(tables: dict[str, list[Row]], console: Console) -> None:
    for title, rows in tables.items():
        table = Table(*COLUMNS, title=title)
        for row in rows:
            table.add_row(*_cells(row))
        console.print(table)


def write_page(
    page: Path,
    tables: dict[str, list[Row]],
    measured: list[Measured],
    facts: dict[str, str],
    rounds: int,
) -> None:
    """Replace what was measured before; the head of the page, written by hand, stays as it is."""
    head = page.read_text().split(MARKER)[0].rstrip()
    parts = [
        head,
        MARKER,
        *map(_table, tables.items()),
        _facts(facts, rounds),
        _spread(measured),
        _plots(page),
    ]
    page.write_text("\n\n".join(part for part in parts if part) + "\n")


def write_json(
    file: Path, tables: dict[str, list[Row]], measured: list[Measured], facts: dict[str, str]
) -> None:
    document: dict[str, Any] = {
        "machine": facts,
        "tables": {title: [vars(row) for row in rows] for title, rows in tables.items()},
        "rounds": {each.workload.name: each.results for each in measured},
    }
    file.write_text(json.dumps(document, indent=2) + "\n")


def _cells(row: Row) -> tuple[str, ...]:
    verdict = {True: "met", False: "missed", None: ""}[row.is_met]
    return (row.work, row.ours, row.peer, row.ratio, row.target, verdict)


def _table(titled: tuple[str, list[Row]]) -> str:
    title, rows = titled
    return f"## {title}\n\n" + _markdown(COLUMNS, [_cells(row) for row in rows])


def _facts(facts: dict[str, str], rounds: int) -> str:
    lines = [f"- {name}: {value}" for name, value in facts.items()]
    return "\n".join(["## The machine", "", *lines, f"- rounds: {rounds}, medians of them"])


def _spread(measured: list[Measured]) -> str:
    """Every side's slowest, median and fastest round: how far to trust a ratio."""
    rows = []
    for each in measured:
        for side, results in each.results.items():
            if results and "seconds" in results[0]:
                rates = sorted(each.rates(side))
                figures = (rates[0], each.rate(side), rates[-1])
                shown = [f"{figure:,.0f}" for figure in figures]
                rows.append((each.workload.name, side, *shown, each.workload.unit, len(results)))
    header = ("workload", "side", "slowest", "median", "fastest", "unit", "rounds")
    return "## The rounds\n\n" + _markdown(header, rows) if rows else ""


def _plots(page: Path) -> str:
    names = sorted(file.name for file in page.parent.glob("bench-*.png"))
    lines = [f"![{name[6:-4].replace('-', ' ')}]({name})" for name in names]
    return "## The plots\n\n" + "\n\n".join(lines) if lines else ""


def _markdown(header: tuple[str, ...], rows: list[Any]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)
