"""Progress fits the terminal: a total, the sources that are active, and a count of the rest."""

from __future__ import annotations

import io

from rich.console import Console

from penstock.app.views.progress import RunReport
from penstock.cli.render.progress import LineProgress, LiveProgress
from penstock.testing import VirtualClock

COUNTS = (
    *("pages", "pages_done", "candidates", "saved", "inserted", "updated", "unchanged"),
    *("rejected", "skipped", "retried", "throttled", "quarantined", "waiting"),
)


def a_report(
    source: str, state: str, requests: int = 0, cursor: str = "", **counts: int
) -> RunReport:
    found = {name: counts.get(name, 0) for name in COUNTS}
    return RunReport(1, source, "full", state, 1.0, found, requests=requests, cursor=cursor)


def seen(reports: list[RunReport], width: int = 80, height: int = 24) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(LiveProgress(console).view(reports))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def fifty() -> list[RunReport]:
    """Of fifty sources the last five run; their names are longer than they should be."""
    states = ["completed"] * 15 + ["queued"] * 28 + ["failed"] * 2 + ["running"] * 5
    return [
        a_report(
            f"a-shop-with-a-long-name-{number:02}.example-company.com", state,
            pages=1000, pages_done=10 * number, saved=7, waiting=3, quarantined=1,
        )
        for number, state in enumerate(states)
    ]  # fmt: skip


def test_fifty_sources_fit_eighty_by_twenty_four() -> None:
    lines = seen(fifty())
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    assert lines[0] == (
        "50 sources: 12,250 of 50,000 pages, 350 records, 5 running, 28 queued, 2 failed,"
    )
    assert [line.split()[2:4] for line in lines[2:7]] == [
        [f"{done}/1,000", "running"] for done in (450, 460, 470, 480, 490)
    ]
    assert lines[-1] == "and 45 more: 28 queued, 2 failed, 15 completed"


def test_few_sources_are_all_shown_whatever_their_state() -> None:
    lines = seen(fifty()[12:17])
    assert len(lines) == 6
    assert lines[0].startswith("5 sources: ")


def test_more_active_sources_than_lines_are_counted_too() -> None:
    lines = seen([a_report(f"shop-{number}", "running", pages=10) for number in range(40)])
    assert len(lines) < 24
    assert lines[-1] == f"and {40 - (len(lines) - 2)} more: {40 - (len(lines) - 2)} running"


def test_a_run_without_pages_shows_its_records_requests_and_cursor() -> None:
    pull = a_report("api", "running", requests=1, cursor='{"page": 3}', saved=1_200)
    [line] = seen([pull])
    assert "0/0" not in line
    assert line.endswith('1,200 records, 1 request, at {"page": 3}')


def test_a_run_that_has_done_nothing_yet_makes_no_figures_up() -> None:
    [line] = seen([a_report("api", "running")])
    assert line.split() == ["api", "running"]


def test_lines_of_a_run_without_pages_come_when_it_moves() -> None:
    console = Console(file=io.StringIO(), width=80)
    progress = LineProgress(console)
    for seconds, requests in ((0.0, 0), (2.5, 4), (5.0, 4), (8.0, 9)):
        counts = dict.fromkeys(COUNTS, 0)
        progress.show([RunReport(1, "api", "full", "running", seconds, counts, requests=requests)])
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines() == [
        "api: running",
        "api: running, 0 records, 4 requests",
        "api: running, 0 records, 9 requests",
    ]


def test_a_log_of_two_runs_of_a_source_repeats_neither() -> None:
    console = Console(file=io.StringIO(), width=80)
    progress = LineProgress(console, VirtualClock())
    live = a_report("shop", "completed", pages=20, pages_done=20)
    shadow = RunReport(2, "shop", "replay", "queued", 0.0, dict.fromkeys(COUNTS, 0))
    for _ in range(3):
        progress.show([live, shadow])

    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines() == [
        "shop: completed, 20 of 20 pages",
        "shop: queued",
    ]


def test_a_thousand_sources_do_not_scroll_a_terminal_however_narrow() -> None:
    reports = [each for part in [fifty()] * 20 for each in part]
    for width in (40, 80, 200):
        assert len(seen(reports, width)) <= 24


def test_a_terminal_is_drawn_four_times_a_second_at_most() -> None:
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True)
    clock = VirtualClock()
    drawn = []
    with LiveProgress(console, clock) as progress:
        for done in range(30):
            progress.show([a_report("acme.com", "running", pages=30, pages_done=done)])
            assert isinstance(console.file, io.StringIO)
            drawn.append(console.file.tell())
            clock.advance(0.05)
    assert len(set(drawn)) == 6


def test_a_log_of_many_sources_has_sums_and_a_line_for_each_that_ends() -> None:
    console = Console(file=io.StringIO(), width=120, soft_wrap=True)
    clock = VirtualClock()
    progress = LineProgress(console, clock)
    for ended in (0, 0, 1, 1, 21):
        progress.show(
            [
                a_report(f"shop-{number:02}", state, pages=2, pages_done=2 * (number < ended))
                for number in range(21)
                for state in ["completed" if number < ended else "running"]
            ]
        )
        clock.advance(1.5)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert lines[:3] == [
        "21 sources: 0 of 42 pages, 0 records, 21 running",
        "shop-00: completed, 2 of 2 pages",
        "21 sources: 2 of 42 pages, 0 records, 20 running, 1 completed",
    ]
    assert lines[3:-1] == [f"shop-{number:02}: completed, 2 of 2 pages" for number in range(1, 21)]
    assert lines[-1] == "21 sources: 42 of 42 pages, 0 records, 21 completed"
