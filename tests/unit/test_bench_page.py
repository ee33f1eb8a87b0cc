"""The page of the bench: measuring one workload again replaces its rows, and no others."""

from __future__ import annotations

from pathlib import Path

from bench.report import MARKER, update_page
from bench.rounds import Measured
from bench.table import Scale
from bench.workloads import WORKLOADS, rows

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
FACTS = {"cores": "2", "load when it began": "0.5", "load when it ended": "0.7"}


def measured(name: str, seconds: float) -> Measured:
    workload = WORKLOADS[name](Scale())
    figures = {"p50_ms": 10.0 * seconds, "web_ms_per_s": 7.0 * seconds, "points": {"/": 1.0}}
    results = [{"seconds": seconds, "done": 1000, **figures}]
    return Measured(workload, {side.name: results for side in workload.sides})


def test_rows_of_one_workload_are_added_and_then_replaced_and_all_others_stay(
    tmp_path: Path,
) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(PAGE.read_text())
    before = page.read_text().splitlines()
    for seconds in (1.0, 2.0):
        for name, title in (
            ("browsers", "The table"),
            ("dashboard", "The table"),
            ("pg-dashboard", "The table on Postgres"),
            ("pg-outlook", "The table on Postgres"),
        ):
            found = measured(name, seconds)
            update_page(page, {title: rows(found)}, [found], FACTS)
    after = page.read_text()
    head, _, below = after.partition(MARKER)
    assert head == PAGE.read_text().partition(MARKER)[0]
    on_sqlite = below.partition("## The table on Postgres")[0]
    for name in ("browsers", "dashboard"):
        for row in rows(measured(name, 2.0)):
            assert on_sqlite.count(f"| {row.work} |") == on_sqlite.count(f"| {row.ours} |") == 1
    assert below.count("1,000 jobs/s") == 0
    lost = [line for line in before if line not in after.splitlines()]
    assert lost == []
    assert below.count("measured again") == 8
