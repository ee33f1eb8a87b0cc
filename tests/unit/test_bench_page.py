"""The page of the bench: measuring one workload again replaces its rows, and no others."""

from __future__ import annotations

from pathlib import Path

from bench.profiles import profile
from bench.report import MARKER, PROFILED, update_page, write_page
from bench.rounds import Measured
from bench.table import Scale
from bench.workloads import WORKLOADS, rows

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
FACTS = {
    "cores": "2",
    "processor": "Some CPU",
    "Python": "3.11.7",
    "load when it began": "0.5",
    "load when it ended": "0.7",
}
# Rows of each kind: with a peer, without one, with several sides that are compared with one of them.
AGAIN = {
    "browsers": "The table",
    "dashboard": "The table",
    "site-10-50ms": "The table",
    "replay": "The table",
    "unchanged": "The table",
    "backfill": "The table",
    "memory": "The table",
    "cold-start": "The table",
    "pages": "The table",
    "pages-by-sources": "The table",
    "pg-dashboard": "The table on Postgres",
    "pg-outlook": "The table on Postgres",
    "pg-pages": "The table on Postgres",
    "pg-pages-by-sources": "The table on Postgres",
}
NAMES = ("p50_ms", "web_ms_per_s", "again_s", "rss_mb", "supervisor_mb", "start_up_s")


def measured(name: str, seconds: float) -> Measured:
    workload = WORKLOADS[name](Scale())
    figures = dict.fromkeys(NAMES, 10.0 * seconds) | {"points": {"/": 1.0}}
    results = [{"seconds": seconds, "done": 1000, **figures}]
    return Measured(workload, {side.name: results for side in workload.sides})


def page_in(folder: Path) -> Path:
    """A page with rows of three workloads, whatever was measured last."""
    page = folder / "benchmarks.md"
    page.write_text(PAGE.read_text())
    found = {name: measured(name, 4.0) for name in ("noop", "enqueue", "pg-noop")}
    on_postgres = rows(found["pg-noop"])
    on_sqlite = [*rows(found["noop"]), *rows(found["enqueue"])]
    tables = {"The table": on_sqlite, "The table on Postgres": on_postgres}
    write_page(page, tables, list(found.values()), FACTS, [])
    return page


def test_rows_of_one_workload_are_added_and_then_replaced_and_all_others_stay(
    tmp_path: Path,
) -> None:
    page = page_in(tmp_path)
    before = page.read_text().splitlines()
    for seconds in (1.0, 2.0):
        for name, title in AGAIN.items():
            found = measured(name, seconds)
            update_page(page, {title: rows(found)}, [found], FACTS, [])
    after = page.read_text()
    head, _, below = after.partition(MARKER)
    assert head == PAGE.read_text().partition(MARKER)[0]
    on_sqlite, _, on_postgres = below.partition("## The table on Postgres")
    for name, title in AGAIN.items():
        part = on_sqlite if title == "The table" else on_postgres
        for row in rows(measured(name, 2.0)):
            same = f"| {row.work} | {row.ours} | {row.peer} | {row.ratio} | {row.target} |"
            assert part.count(same) == 1, same
    assert "1,000 jobs/s" not in below
    lost = [line for line in before if line not in after.splitlines()]
    assert lost == []
    for name in AGAIN:
        assert below.count(f"\n- {name} measured again on 20") == 1
    assert below.count("(Some CPU, 2 cores, Python 3.11.7): load 0.5 to 0.7, 1 rounds") == len(
        AGAIN
    )


def test_a_row_that_misses_its_target_says_so() -> None:
    for seconds, verdict in ((0.01, True), (20.0, False)):
        by_lastmod = rows(measured("unchanged", seconds))[0]
        assert by_lastmod.is_met is verdict
    assert [row.is_met for row in rows(measured("replay", 1.0))] == [False]
    assert [row.is_met for row in rows(measured("memory", 16.0))] == [False] * 3
    assert [row.is_met for row in rows(measured("memory", 15.0))] == [True] * 3
    assert [row.is_met for row in rows(measured("cold-start", 51.0))] == [False] * 2


def test_a_row_that_missed_has_a_profile_until_it_is_measured_again_and_meets_its_target(
    tmp_path: Path,
) -> None:
    page = page_in(tmp_path)
    used = {"worker loop: penstock.http": 3.0, "x": 0.1, "worker store: penstock.store": 0.9}
    missed = [profile(name, "Penstock", used, 1000, 2.0) for name in ("site", "site-10")]
    again = [measured(name, 1.0) for name in ("site", "site-10")]
    update_page(page, {}, again, FACTS, missed)
    line = "Penstock | 4,000 µs | 2.0 | worker loop: penstock.http 75%; worker store: penstock.store 22% |"
    assert f"| site | {line}" in page.read_text()
    assert f"| site-10 | {line}" in page.read_text()
    update_page(page, {}, again[:1], FACTS, [])
    assert f"| site | {line}" not in page.read_text()
    assert f"| site-10 | {line}" in page.read_text()
    update_page(page, {}, again[1:], FACTS, [])
    assert PROFILED not in page.read_text()


def test_a_whole_run_replaces_everything_but_the_head_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(PAGE.read_text())
    found = [measured(name, 2.0) for name in ("site", "pg-pages")]
    tables = {AGAIN.get(each.workload.name, "The table"): rows(each) for each in found}
    missed = [profile("site", "Penstock", {"worker loop: penstock.http": 1.0}, 1000, 2.0)]
    write_page(page, tables, found, FACTS, missed)
    head, _, below = page.read_text().partition(MARKER)
    assert head == PAGE.read_text().partition(MARKER)[0]
    titles = [line for line in below.splitlines() if line.startswith("## ")]
    assert titles[:4] == [
        "## The table",
        "## The table on Postgres",
        f"## {PROFILED}",
        "## The machine",
    ]
    for each in found:
        for row in rows(each):
            assert f"| {row.work} | {row.ours} | {row.peer} |" in below
    assert "Huey" not in below
    assert "- measured on: 20" in below
