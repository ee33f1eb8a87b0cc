"""The figures as text: a table for the terminal, and the measured part of docs/benchmarks.md."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.profiles import Profile
from bench.rounds import Measured
from bench.table import Row

MARKER = "<!-- Everything below this line is written by `make bench`. -->"
ROUNDS = ("workload", "side", "slowest", "median", "fastest", "unit", "rounds")
PROFILED = "Where the time goes in rows that missed"
PROFILE = ("workload", "side", "processor time for each", "cores at work", "of which")
COLUMNS = ("work", "Penstock", "peer", "ratio", "target", "")


def show(tables: dict[str, list[Row]], console: Console) -> None:
    for title, rows in tables.items():
        table = Table(*COLUMNS, title=title)
        for row in rows:
            table.add_row(*_cells(row))
        console.print(table)


def show_profiles(found: list[Profile], console: Console) -> None:
    if not found:
        return
    table = Table(*PROFILE, title=PROFILED)
    for each in found:
        table.add_row(*each.cells())
    console.print(table)


def write_page(
    page: Path,
    tables: dict[str, list[Row]],
    measured: list[Measured],
    facts: dict[str, str],
    found: list[Profile],
) -> None:
    """Replace what was measured before; the head of the page, written by hand, stays as it is."""
    head = page.read_text().split(MARKER)[0].rstrip()
    parts = [
        head,
        MARKER,
        *map(_table, tables.items()),
        _profiles(found),
        _facts(measured, facts),
        _spread(measured),
        _plots(page),
    ]
    page.write_text("\n\n".join(part for part in parts if part) + "\n")


def update_page(
    page: Path,
    tables: dict[str, list[Row]],
    measured: list[Measured],
    facts: dict[str, str],
    profiled: list[Profile],
) -> None:
    """Replace the rows of these workloads, or add them; all others stay, and so does what stands above."""
    head, _, below = page.read_text().partition(MARKER)
    titles = [
        "The table",
        "The table on Postgres",
        PROFILED,
        "The machine",
        "The rounds",
        "The plots",
    ]
    found = dict.fromkeys(titles, "") | dict(
        part.split("\n\n", 1) for part in below.strip().removeprefix("## ").split("\n\n## ")
    )
    for title, rows in tables.items():
        found[title] = _replaced(found[title], COLUMNS, [_cells(row) for row in rows])
    again = {each.workload.name for each in measured}
    new = [each.cells() for each in profiled]
    missed = _replaced(found[PROFILED], PROFILE, new, again).strip()
    found[PROFILED] = missed if missed != _markdown(PROFILE, []) else ""
    found["The rounds"] = _replaced(found["The rounds"], ROUNDS, _spread_rows(measured))
    found["The machine"] = _with_moments(found["The machine"], measured, facts)
    parts = [f"## {title}\n\n{body.strip()}" for title, body in found.items() if body.strip()]
    page.write_text("\n\n".join([head.rstrip(), MARKER, *parts]) + "\n")


def _replaced(
    table: str, header: tuple[str, ...], rows: list[Any], again: Iterable[str] = ()
) -> str:
    """A table with these rows in the place of those that begin with the same words or with `again`."""
    new = _markdown(header, rows).splitlines()[2:]
    names = {line.split(" | ")[0] for line in new} | {f"| {name}" for name in again}
    lines = table.splitlines() or _markdown(header, []).splitlines()
    old = [at for at, line in enumerate(lines) if line.split(" | ")[0] in names]
    place = old[0] if old else len(lines)
    before = [line for at, line in enumerate(lines) if at < place]
    after = [line for at, line in enumerate(lines) if at >= place and at not in old]
    return "\n".join([*before, *new, *after])


def _with_moments(lines: str, measured: list[Measured], facts: dict[str, str]) -> str:
    """When and where each of these workloads was measured last, in the place of what stood there."""
    loads = " to ".join(value for name, value in facts.items() if name.startswith("load "))
    where = f"{facts['processor']}, {facts['cores']} cores, Python {facts['Python']}"
    new = {
        f"- {each.workload.name} measured again on": f" {_today()}"
        f" ({where}): load {loads}, {each.rounds} rounds"
        for each in measured
    }
    kept = [line for line in lines.splitlines() if not line.startswith(tuple(new))]
    return "\n".join([*kept, *(words + moment for words, moment in new.items())])


def write_json(
    file: Path,
    tables: dict[str, list[Row]],
    measured: list[Measured],
    facts: dict[str, str],
    profiled: list[Profile],
) -> None:
    document: dict[str, Any] = {
        "machine": facts,
        "tables": {title: [vars(row) for row in rows] for title, rows in tables.items()},
        "rounds": {each.workload.name: each.results for each in measured},
        "profiles": [asdict(each) for each in profiled],
    }
    file.write_text(json.dumps(document, indent=2) + "\n")


def _cells(row: Row) -> tuple[str, ...]:
    verdict = {True: "met", False: "missed", None: ""}[row.is_met]
    return (row.work, row.ours, row.peer, row.ratio, row.target, verdict)


def _table(titled: tuple[str, list[Row]]) -> str:
    title, rows = titled
    return f"## {title}\n\n" + _markdown(COLUMNS, [_cells(row) for row in rows])


def _profiles(found: list[Profile]) -> str:
    rows = [each.cells() for each in found]
    return f"## {PROFILED}\n\n" + _markdown(PROFILE, rows) if rows else ""


def _facts(measured: list[Measured], facts: dict[str, str]) -> str:
    rounds = max((each.rounds for each in measured), default=0)
    lines = [f"- {name}: {value}" for name, value in {"measured on": _today(), **facts}.items()]
    lines.append(f"- rounds: {rounds} at the most, medians of them")
    return "\n".join(["## The machine", "", *lines])


def _today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def _spread(measured: list[Measured]) -> str:
    rows = _spread_rows(measured)
    return "## The rounds\n\n" + _markdown(ROUNDS, rows) if rows else ""


def _spread_rows(measured: list[Measured]) -> list[Any]:
    """Every side's slowest, median and fastest round: how far to trust a ratio."""
    rows: list[Any] = []
    for each in measured:
        for side, results in each.results.items():
            if results and "seconds" in results[0]:
                rates = sorted(each.rates(side))
                figures = (rates[0], each.rate(side), rates[-1])
                shown = [f"{figure:,.0f}" for figure in figures]
                rows.append((each.workload.name, side, *shown, each.workload.unit, len(results)))
    return rows


def _plots(page: Path) -> str:
    names = sorted(file.name for file in page.parent.glob("bench-*.png"))
    lines = [f"![{name[6:-4].replace('-', ' ')}]({name})" for name in names]
    return "## The plots\n\n" + "\n\n".join(lines) if lines else ""


def _markdown(header: tuple[str, ...], rows: list[Any]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)
