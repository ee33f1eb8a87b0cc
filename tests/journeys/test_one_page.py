"""One page, looked at and tried: `penstock page`, `penstock try`; and a run performed by a program."""

from __future__ import annotations

import asyncio
import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Project
from tests.journeys.rig import ENVIRONMENT, PAGES, CountingSite, Rig, counting_site, source_of

SOURCE = "site.example"
COUNT = 5


@pytest.fixture
def site() -> Iterator[CountingSite]:
    with counting_site() as found:
        yield found


@pytest.fixture
def rig(tmp_path: Path, site: CountingSite) -> Iterator[Rig]:
    with Rig(tmp_path, {SOURCE: source_of(site, COUNT)}) as made:
        assert made.penstock("run", SOURCE).returncode == 0
        yield made


def contents(rig: Rig) -> tuple[object, ...]:
    """All that a dry run might have written."""
    kept = sorted(path.stat().st_size for path in rig.folder.glob("snapshots/**/*.warc*"))
    return rig.events(), rig.store.records.of("page"), rig.jobs(), rig.store.runs.newest(), kept


def test_fetched_page_is_shown_safely_and_written_as_it_was(rig: Rig, site: CountingSite) -> None:
    before = site.counts()
    page = rig.jobs(stage="extract")[0]

    shown = rig.penstock("page", str(page.id))

    assert shown.returncode == 0, shown.stderr
    assert "status    200" in shown.stdout
    assert "content-type: text/plain" in shown.stdout
    assert shown.stdout.endswith(f"\n{page.key.removeprefix(site.url)}\n")
    told = json.loads(rig.penstock("page", page.key, "--json").stdout)
    assert (told["status"], told["job"], told["run"]) == (200, page.id, 1)
    written = rig.penstock("page", str(page.id), "--output", "page.txt")
    assert "written to page.txt" in written.stdout
    assert (rig.folder / "page.txt").read_bytes() == told["body"].encode()
    assert rig.penstock("page", str(page.id), "--output", "page.txt").returncode == 7
    assert rig.penstock("page", "https://nowhere.example/").returncode == 2
    assert site.counts() == before


def test_written_page_is_its_owners_alone_and_goes_through_no_link(rig: Rig) -> None:
    page = str(rig.jobs(stage="extract")[0].id)
    aim = rig.folder / "aim.txt"
    (rig.folder / "link.txt").symlink_to(aim)

    assert rig.penstock("page", page, "--output", "own.txt").returncode == 0
    refused = rig.penstock("page", page, "--output", "link.txt")

    assert stat.S_IMODE((rig.folder / "own.txt").stat().st_mode) == 0o600
    assert refused.returncode == 7
    assert "link.txt exists already" in refused.stderr
    assert not aim.exists()


def test_try_shows_what_would_change_and_writes_nothing(rig: Rig, site: CountingSite) -> None:
    better = PAGES.replace('yield {"path": response.text}', 'yield {"path": response.text, "n": 1}')
    (rig.folder / "steps.py").write_text(better)
    before, requests = contents(rig), site.counts()["/page/1"]

    done = rig.penstock("try", SOURCE, f"{site.url}/page/1")

    assert done.returncode == 0, done.stderr
    assert "changed  1" in done.stdout
    assert site.counts()["/page/1"] == requests + 1
    offline = rig.penstock("try", SOURCE, f"{site.url}/page/1", "--offline", "--json")
    [change] = json.loads(offline.stdout)["changes"]
    assert (change["kind"], change["key"]) == ("changed", "/page/1")
    assert change["fields"] == [{"field": "n", "path": ["n"], "after": 1}]
    assert site.counts()["/page/1"] == requests + 1
    assert contents(rig) == before
    assert rig.penstock("try", SOURCE, f"{site.url}/never", "--offline").returncode == 4


def test_try_shows_the_lines_of_the_step_that_failed(rig: Rig, site: CountingSite) -> None:
    broken = PAGES.replace('yield {"path": response.text}', 'yield {"path": response.txt}')
    (rig.folder / "steps.py").write_text(broken)
    page = rig.jobs(stage="extract")[0]

    done = rig.penstock("try", SOURCE, str(page.id))

    assert done.returncode == 4
    assert "AttributeError" in done.stdout
    assert 'yield {"path": response.txt}' in done.stdout
    assert "steps.py" in done.stdout


def test_records_are_chosen_by_source_run_and_time(rig: Rig) -> None:
    def keys(*words: str) -> list[str]:
        done = rig.penstock("records", "page", "--format", "jsonl", *words)
        assert done.returncode == 0, done.stderr
        return [json.loads(line)["key"] for line in done.stdout.splitlines()]

    assert len(keys("--source", SOURCE, "--run", "1", "--since", "1h")) == COUNT
    assert keys("--since", "2100-01-01") == []
    assert rig.penstock("records", "page", "--run", "99").returncode == 2


PROGRAM = """
import asyncio
from penstock import Project

async def cell():
    with Project.load(".") as project:
        return project.perform("site.example", reason="from a notebook")

report = asyncio.run(cell())
print(report.run, report.state, report.counts["pages_done"])
"""


def test_run_is_performed_inside_a_running_event_loop(rig: Rig) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=rig.folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip

    assert done.stdout.split() == ["2", "completed", str(COUNT)], done.stderr
    rig.assert_sound()


def test_page_is_tried_from_a_program(rig: Rig, site: CountingSite) -> None:
    async def cell() -> list[str]:
        with Project.load(rig.folder) as project:
            return [job.state for job in project.try_page(SOURCE, f"{site.url}/page/1").jobs]

    assert asyncio.run(cell()) == ["succeeded", "succeeded"]
