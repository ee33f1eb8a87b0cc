"""Each runbook against its fault, caused for real, and followed to the end."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.engine.leader.hooks import CAP_S, MOST_ATTEMPTS, HookChore
from penstock.engine.leader.scheduler import Scheduler
from penstock.runbooks.library import RUNBOOKS
from tests.journeys.changing_site import ChangingSite, changing_site
from tests.journeys.following import SHOP, Operated, Simulated, steps
from tests.journeys.rig import ENVIRONMENT, PENSTOCK
from tests.journeys.test_cli import read_terminal
from tests.postgres.server import Server

PAGES = 4
HOUR_S = 3600.0
KILLER = """
import os
import signal

from penstock import Pipeline

shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    yield {"n": 1}


@shop.step(after="discover", unit="page", key="n")
async def extract(page, ctx):
    os.kill(os.getpid(), signal.SIGKILL)
"""
OLD, NEW = '<b class="price">{}</b>', '<b data-cost="{}">'
BY_PRICE = 'min(1.0, product["price"])'
NEW_PATTERN = 'data-cost="([0-9.]+)"'


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=12m,mode=0700", "penstock-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(mounting, capture_output=True).returncode != 0:
        pytest.skip("can't mount a small file system here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(site: ChangingSite, layout: str, first: int = 0, pages: int = PAGES) -> None:
    for number in range(first, first + pages):
        site.page(f"/p/{number}", layout.format(number + 1))


def operated(folder: Path, site: ChangingSite, text: str, **settings: object) -> Operated:
    return Operated(folder, text, {"sitemap": f"{site.url}/sitemap.xml"}, **settings)


def prices(shop: Operated) -> dict[str, float]:
    found = shop.project.records.each("product")
    return {row.key.rpartition("/")[2]: row.data["price"] for row in found}


def test_source_broke_leads_from_a_changed_layout_to_the_records_of_the_pages_that_failed(
    tmp_path: Path,
) -> None:
    with changing_site() as site, operated(tmp_path, site, steps()) as shop:
        fill(site, OLD)
        shop.run()
        assert not shop.state("source-broke").is_raised
        for number in range(PAGES):
            site.page(f"/p/{number}", NEW.format(number + 10))
        shop.run()

        state = shop.state("source-broke")
        assert {each.name for each in state.signals if each.is_raised} == {"failed_share"}
        assert shop.follow("source-broke", before="fix") == ["stop-requests", "compare"]
        assert shop.state("source-broke").next == "fix"
        shop.deploy(steps(NEW_PATTERN))
        assert shop.follow("source-broke", before="commit") == ["replay"]
        assert prices(shop) == {str(number): number + 1 for number in range(PAGES)}
        left = shop.follow("source-broke")

        assert left[0] == "commit"
        assert left[-1] == "confirm"
        assert "run" in left
        assert prices(shop) == {str(number): number + 10 for number in range(PAGES)}
        assert shop.project.overview().quarantined == 0
        assert shop.state("source-broke").execution is None
        told = shop.journal()
        assert told[0] == f"ann: runbook.started source-broke {SHOP}"
        assert (
            told[-1] == f"ann: runbook.ended source-broke {SHOP} recovered: because of source-broke"
        )


def test_duplicate_explosion_takes_back_the_records_that_a_session_id_made_new(
    tmp_path: Path,
) -> None:
    with Simulated(tmp_path, steps()) as shop:
        shop.serve(OLD, PAGES)
        shop.run(times=3)
        shop.serve(OLD, PAGES, query="?session=1")
        shop.run()
        raised = {each.name for each in shop.state("duplicate-explosion").signals if each.is_raised}
        assert raised == {"new_keys_share"}

        assert shop.follow("duplicate-explosion", before="fix") == ["stop-requests", "compare"]
        shop.deploy(steps(key='product["url"].partition("?")[0]'))
        left = shop.follow("duplicate-explosion")
        assert left == ["undo", "replay", "allow-requests", "run", "confirm"]
        assert set(prices(shop)) == {str(number) for number in range(PAGES)}


def test_low_quality_brings_back_the_good_records_and_then_those_of_the_mended_pipeline(
    tmp_path: Path,
) -> None:
    with Simulated(tmp_path, steps(score=BY_PRICE)) as shop:
        shop.serve(OLD, PAGES)
        shop.run(times=4)
        good = prices(shop)
        shop.serve(OLD.replace("{}", "0.{}"), PAGES)
        shop.run()
        state = shop.state("low-quality")
        assert {each.name for each in state.signals if each.is_raised} == {"quality_drop"}

        taken = shop.follow("low-quality", before="fix")
        assert taken == ["stop-requests", "compare", "undo"]
        assert prices(shop) == good
        shop.deploy(steps(score="1.0"))
        left = shop.follow("low-quality")
        assert left == ["replay", "commit", "allow-requests", "run", "confirm"]
        assert prices(shop) == {"0": 0.1, "1": 0.2, "2": 0.3, "3": 0.4}


def test_low_quality_redrives_what_was_rejected_where_no_replay_is_wanted(tmp_path: Path) -> None:
    with Simulated(tmp_path, steps(score=BY_PRICE), source={"threshold": 0.5}) as shop:
        shop.serve(OLD, PAGES)
        shop.run(times=4)
        shop.serve(OLD.replace("{}", "0.{}"), PAGES)
        shop.run()
        assert shop.follow("low-quality", before="fix") == ["stop-requests", "compare"]
        shop.deploy(steps(score="1.0"))

        left = shop.follow("low-quality", skipped=["replay"])
        assert left == ["redrive", "allow-requests", "run", "confirm"]
        assert prices(shop) == {"0": 0.1, "1": 0.2, "2": 0.3, "3": 0.4}


def test_backlog_growth_names_the_gate_and_the_missing_workers(tmp_path: Path) -> None:
    with Simulated(tmp_path, steps()) as shop:
        shop.serve(OLD, PAGES)
        shop.project.runs.start(SHOP)
        shop.project.sources.pause(SHOP, reason="a test")
        state = shop.state("backlog-growth")
        assert state.is_raised
        assert state.next == "start-workers"
        shop.project.connection.workers.register("w", "here", 1, "1")

        assert shop.follow("backlog-growth", before="raise-capacity") == ["unblock", "resume"]
        shop.work()
        assert shop.follow("backlog-growth") == ["confirm"]
        assert prices(shop) == {str(number): number + 1 for number in range(PAGES)}


def test_schedule_missed_replaces_the_tick_that_nobody_was_there_for(tmp_path: Path) -> None:
    schedule = {"every": "1h", "missed": "skip"}
    with Simulated(tmp_path, steps(), source={"schedule": schedule}) as shop:
        shop.serve(OLD, PAGES)
        store = shop.project.connection
        scheduler = Scheduler(shop.project, store)
        scheduler.plan()
        shop.clock.advance(5.5 * HOUR_S)
        state = shop.state("schedule-missed")
        assert {each.name for each in state.signals if each.is_raised} == {"overdue"}
        assert state.next == "start-scheduler"

        shop.project.sources.pause(SHOP, reason="a test")
        assert store.leaders.lead("scheduler", "here/1/a", 60.0)
        scheduler.tick()
        state = shop.state("schedule-missed")
        assert {each.name for each in state.signals if each.is_raised} == {"missed"}
        assert shop.follow("schedule-missed") == ["explain", "resume", "run", "confirm"]
        assert prices(shop) == {str(number): number + 1 for number in range(PAGES)}


def test_budget_running_out_ends_when_the_budget_is_raised(tmp_path: Path) -> None:
    with Simulated(tmp_path, steps(), source={"budget": {"requests": "3/d"}}) as shop:
        shop.serve(OLD, PAGES)
        shop.project.runs.start(SHOP)
        shop.work(for_s=60.0)
        state = shop.state("budget-running-out")
        assert {each.name for each in state.signals if each.is_raised} == {"budget_short"}

        taken = shop.follow("budget-running-out", before="raise-budget")
        assert taken == ["pause", "find-consumer"]
        shop.deploy(steps(), budget={"requests": "3000/d"})
        assert shop.follow("budget-running-out") == ["resume", "release", "confirm"]
        shop.work()
        assert set(prices(shop)) == {str(number) for number in range(PAGES)}


def test_workers_dead_discards_the_job_that_killed_them(tmp_path: Path) -> None:
    with Operated(tmp_path, KILLER, {}) as shop:
        shop.run()
        state = shop.state("workers-dead", None)
        raised = {each.name for each in state.signals if each.is_raised}
        assert raised == {"workers", "poison"}

        taken = shop.follow("workers-dead", None, before="start-workers")
        assert taken == ["hold", "find-killer", "discard", "unhold"]
        shop.project.connection.workers.register("w", "here", 1, "1")
        assert shop.follow("workers-dead", None) == ["confirm"]
        assert shop.project.overview().quarantined == 0


def test_store_full_holds_the_project_until_there_is_space(small_disk: Path) -> None:
    with Simulated(small_disk, steps()) as shop:
        shop.serve(OLD, PAGES)
        shop.run()
        shop.project.connection.workers.register("w", "here", 1, "1")
        ballast = small_disk / "ballast"
        with open(ballast, "wb") as file:
            file.truncate(0)
            os.posix_fallocate(file.fileno(), 0, int(os.statvfs(small_disk).f_bavail * 4096 * 0.97))
        assert shop.state("store-full", None).is_raised

        assert shop.follow("store-full", None, before="free-space") == ["hold"]
        ballast.unlink()
        assert shop.follow("store-full", None) == ["check", "unhold", "confirm"]


def test_delivery_failed_sends_again_what_was_given_up(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    hooks = [{"name": "tell", "command": ["/usr/bin/test", "-f", str(ready)]}]
    with Simulated(tmp_path, steps(), hooks=hooks) as shop:
        shop.serve(OLD, PAGES)
        chore = HookChore(shop.project, shop.project.connection)
        chore.plan()
        shop.run()
        for _ in range(MOST_ATTEMPTS):
            chore.part()
            shop.clock.advance(CAP_S)
        state = shop.state("delivery-failed", None)
        assert {each.name for each in state.signals if each.is_raised} == {"given_up"}
        shop.project.connection.workers.register("w", "here", 1, "1")

        assert shop.follow("delivery-failed", None, before="redeliver") == ["look", "fix-receiver"]
        ready.touch()
        assert shop.follow("delivery-failed", None, before="confirm") == ["redeliver"]
        chore.part()
        assert shop.follow("delivery-failed", None) == ["confirm"]
        assert [each.state for each in shop.project.hooks.each()] == ["delivered"]


def test_database_down_is_followed_while_the_database_is_away_and_recorded_when_it_is_back(
    tmp_path: Path, own_postgres: Server
) -> None:
    with Simulated(tmp_path, steps(), store=own_postgres.create_database("operated")) as shop:
        shop.serve(OLD, PAGES)
        shop.project.connection.workers.register("w", "here", 1, "1")
        own_postgres.stop()
        state = shop.state("database-down", None)
        assert {each.name for each in state.signals if each.is_raised} == {"store_reachable"}
        assert shop.follow("database-down", None, before="restore-access") == ["leave-workers"]
        assert not shop.state("database-down", None).is_recorded

        own_postgres.start_again()
        assert shop.follow("database-down", None) == ["hold", "check", "unhold", "confirm"]
        assert not list(tmp_path.glob(".penstock-runbook*"))
        assert "leave-workers" in shop.journal()[1]


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[Simulated]:
    """A source whose layout has changed; only virtual time has passed."""
    with Simulated(tmp_path, steps()) as shop:
        shop.serve(OLD, PAGES)
        shop.run()
        shop.serve(NEW, PAGES)
        shop.run()
        yield shop


def test_terminal_leads_through_the_steps_and_another_command_goes_on_where_it_was_left(
    broken: Simulated,
) -> None:
    ours, theirs = pty.openpty()
    command = [*PENSTOCK, "runbook", "source-broke", SHOP]
    with subprocess.Popen(
        command, cwd=broken.folder, env=ENVIRONMENT, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        os.write(ours, b"d\nthe layout changed\ns\nI know it\nq\n")
        shown = read_terminal(ours)
    assert process.returncode == 0, shown
    assert f"{SHOP}: Extraction broke after a site change: the fault is there" in shown
    assert f"the same as: penstock breaker open {SHOP} --for 24h" in shown
    assert f"to undo it: penstock breaker close {SHOP}" in shown
    assert f"to continue: penstock runbook source-broke {SHOP}" in shown

    state = broken.state("source-broke")
    assert [(each.name, each.state) for each in state.steps[:4]] == [
        ("stop-requests", "done"),
        ("cancel-run", "not needed"),
        ("compare", "skipped"),
        ("fix", "next"),
    ]
    assert state.step("stop-requests").reason == "the layout changed"


def test_steps_are_taken_skipped_and_ended_by_a_program(
    broken: Simulated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(broken.folder)

    def said(*words: str, code: int = 0) -> str:
        assert main(["runbook", *words]) == code
        told = capsys.readouterr()
        return told.out if code == 0 else told.err

    listed = json.loads(said("--json"))
    assert len(listed) == len(RUNBOOKS)
    shop = ("source-broke", SHOP)
    assert json.loads(said(*shop, "--json"))["next"] == "stop-requests"
    seen = json.loads(said(*shop, "--step", "stop-requests", "--dry-run", "--json"))
    assert (seen["is_done"], broken.project.overview().quarantined) == (False, PAGES)
    assert "say --yes" in said(*shop, "--step", "stop-requests", code=7)
    done = json.loads(said(*shop, "--step", "stop-requests", "--yes", "--json", "--reason", "x"))
    assert done["is_done"]
    assert done["undo"] == {"verb": "breakers.close", "target": SHOP}
    assert "the step that applies is compare" in said(*shop, "--step", "commit", "--yes", code=7)
    assert "compare is skipped" in said(*shop, "--skip", "compare")
    assert json.loads(said(*shop, "--end", "--json"))["source"] == SHOP
    assert "runbook source-broke for shop is not in progress" in said(*shop, "--end", code=7)
    assert "name it" in said("source-broke", code=2)
    assert "takes no source" in said("store-full", SHOP, code=2)
    assert "did you mean 'source-broke'?" in said("source-brok", SHOP, code=2)
