"""The lifecycle by the real command: drafts, maintenance, runs that continue others, and what they say."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.job import JobState
from penstock.jobs.run import RunState
from tests.journeys.rig import Rig, counting_site, until
from tests.journeys.test_backfill import PRICES, SHARE, YEAR, asked_for, source_of

PAGES = 6
STEPS = """
import os
import time
from pathlib import Path

from penstock import Permanent, Pipeline

HERE = Path(__file__).parent
site = Pipeline("site")


@site.step(unit="run")
def discover(ctx):
    with open(HERE / "discovered.txt", "a") as file:
        file.write("discovered\\n")
    for number in range(6):
        yield {"n": number}


@site.step(after="discover", unit="page", key="n", isolation="process", timeout="60s")
def extract(page, ctx):
    with open(HERE / "fetched.txt", "a") as file:
        file.write(f"{page['n']}\\n")
    if page["n"] >= 4 and (HERE / "broken").exists():
        raise Permanent("broken")
    if (HERE / "slow").exists():
        (HERE / f"pid-{page['n']}").write_text(str(os.getpid()))
        while not (HERE / "go").exists():
            time.sleep(0.01)
    yield page


@site.step(after="extract", unit="candidate")
def persist(page, ctx):
    ctx.save("page", key=str(page["n"]), data=page)
"""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    sources = {"acme.com": {"pipeline": "steps:site"}, "other.org": {"pipeline": "steps:site"}}
    with Rig(tmp_path, sources, STEPS) as made:
        yield made


def said(rig: Rig, *words: str, code: int = 0) -> str:
    done = rig.penstock(*words)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def answered(rig: Rig, *words: str) -> Any:
    done = rig.penstock(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def fetched(rig: Rig) -> list[int]:
    return [int(line) for line in (rig.folder / "fetched.txt").read_text().split()]


def test_draft_waits_until_it_is_started(rig: Rig) -> None:
    assert "run 1 of acme.com is draft; penstock start 1" in said(rig, "run", "acme.com", "--draft")
    assert "only an active run can be paused" in said(rig, "pause", "1", code=7)
    said(rig, "up", "--until-idle")
    assert rig.run(1).state is RunState.DRAFT
    assert "none open" in said(rig, "status")

    answer = answered(rig, "start", "1", "--reason", "checked")
    assert (answer["run"], answer["state"], answer["is_new"]) == (1, "queued", True)
    said(rig, "up", "--until-idle")

    assert rig.run(1).state is RunState.COMPLETED
    assert "run 1 is completed; only a draft can be started" in said(rig, "start", "1", code=7)
    [event] = [each for each in rig.events("run.queued") if each.detail == "checked"]
    assert event.actor


def test_held_project_accepts_work_and_starts_none_of_it(rig: Rig) -> None:
    (rig.folder / "broken").touch()
    assert "everything is held" in said(rig, "hold", "--reason", "moving the disk")
    assert "was held already" in said(rig, "hold")

    rig.enqueue("acme.com")
    said(rig, "up", "--until-idle")

    assert {job.state for job in rig.jobs()} == {JobState.QUEUED}
    status = said(rig, "status")
    assert "held since" in status
    assert "moving the disk" in status
    [held] = answered(rig, "status")["holds"]
    assert (held["source"], held["reason"]) == (None, "moving the disk")
    assert "moving the disk" in said(rig, "sources")
    refusal = said(rig, "run", "other.org", code=7)
    assert "everything is held by" in refusal
    assert "penstock unhold" in refusal

    assert "everything is no longer held" in said(rig, "unhold", "--reason", "moved")
    said(rig, "up", "--until-idle")
    assert rig.run(1).state is RunState.PARTIAL
    assert [event.detail for event in rig.events("project.held", "project.unheld")] == [
        "moving the disk", "moved",
    ]  # fmt: skip


def test_held_source_leaves_the_others_alone(rig: Rig) -> None:
    answer = answered(rig, "hold", "acme.com", "--reason", "a quiet night")
    assert (answer["source"], answer["state"], answer["is_new"]) == ("acme.com", "held", True)
    acme, other = rig.enqueue("acme.com", "other.org")

    said(rig, "up", "--until-idle")

    assert rig.run(acme).state is RunState.QUEUED
    assert rig.run(other).state is RunState.COMPLETED
    assert "acme.com is held by" in said(rig, "run", "acme.com", code=7)
    said(rig, "hold")
    assert "acme.com is still held: penstock unhold acme.com" in said(rig, "unhold")


def test_hold_outlives_a_kill(rig: Rig) -> None:
    (rig.folder / "slow").touch()
    rig.enqueue("acme.com")
    up = rig.start("up")
    until(lambda: list(rig.folder.glob("pid-*")), "a page runs", process=up)
    said(rig, "hold", "--reason", "now")
    for pid in [*rig.worker_pids(up), up.pid]:
        os.kill(pid, signal.SIGKILL)
    up.wait()
    (rig.folder / "go").touch()
    before = len(fetched(rig))

    said(rig, "up", "--until-idle")

    assert len(fetched(rig)) == before, "nothing starts after the restart, either"
    said(rig, "unhold")
    said(rig, "up", "--until-idle")
    assert rig.run(1).state is RunState.COMPLETED


def test_single_job_is_set_aside_and_put_back(rig: Rig) -> None:
    (rig.folder / "broken").touch()
    said(rig, "run", "acme.com", code=3)
    said(rig, "pause", "acme.com")
    said(rig, "retry", "1", "--failed")
    job_id = rig.jobs(JobState.QUEUED)[0].id

    assert "is held" in said(rig, "hold", "--job", str(job_id), "--reason", "ask Ann first")
    shown = said(rig, "jobs", str(job_id))
    assert "ask Ann first" in shown
    assert f"penstock unhold --job {job_id}" in shown
    (rig.folder / "broken").unlink()
    said(rig, "resume", "acme.com")
    said(rig, "up", "--until-idle")
    assert rig.run(1).state is RunState.RUNNING, "it waits for the job that is held"

    answer = answered(rig, "unhold", "--job", str(job_id))
    assert (answer["job"], answer["state"]) == (job_id, "queued")
    said(rig, "up", "--until-idle")
    assert rig.run(1).state is RunState.COMPLETED


def test_run_that_ended_partial_is_continued_with_only_what_is_left(rig: Rig) -> None:
    (rig.folder / "broken").touch()
    said(rig, "run", "acme.com", code=3)
    (rig.folder / "broken").unlink()
    (rig.folder / "fetched.txt").write_text("")
    assert "penstock resume 1 --from-checkpoint" in said(rig, "resume", "1", code=7)

    told = said(rig, "resume", "1", "--from-checkpoint", "--reason", "mended")
    assert "run 2 of acme.com does what run 1 has left: 2 jobs queued" in told
    said(rig, "up", "--until-idle")

    assert rig.run(2).state is RunState.COMPLETED
    assert sorted(fetched(rig)) == [4, 5]
    assert (rig.folder / "discovered.txt").read_text() == "discovered\n"
    assert len(rig.store.records.of("page")) == PAGES
    refusal = said(rig, "resume", "1", "--from-checkpoint", code=7)
    assert "run 2 continues run 1 already; it is completed" in refusal
    assert "there is nothing left of it" in said(rig, "resume", "2", "--from-checkpoint", code=7)


def test_cancelled_run_is_stopped_hard_and_can_be_continued(rig: Rig) -> None:
    """Its steps run in child processes, which end with it; nothing that they still send is taken."""
    (rig.folder / "slow").touch()
    [run_id] = rig.enqueue("acme.com")
    up = rig.start("up")
    until(lambda: list(rig.folder.glob("pid-*")), "a page is in a child", process=up)
    pids = {int(path.read_text() or 0) for path in rig.folder.glob("pid-*")}

    answer = answered(rig, "cancel", str(run_id), "--yes", "--reason", "wrong site")
    assert (answer["run"], answer["state"]) == (run_id, "cancelled")

    until(lambda: not any(is_alive(pid) for pid in pids if pid), "its children are gone")
    assert rig.jobs(JobState.RUNNING) == []
    (rig.folder / "go").touch()
    up.send_signal(signal.SIGTERM)
    up.wait()
    assert rig.store.records.of("page") == []
    reasons = {event.detail for event in rig.events("job.cancelled") if event.run_id == run_id}
    assert reasons <= {"wrong site", f"run {run_id} was cancelled"}

    said(rig, "resume", str(run_id), "--from-checkpoint")
    said(rig, "up", "--until-idle")
    assert rig.run(run_id + 1).state is RunState.COMPLETED
    assert len(rig.store.records.of("page")) == PAGES


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_pause_outlives_a_kill_and_lets_what_runs_commit(rig: Rig) -> None:
    (rig.folder / "slow").touch()
    [run_id] = rig.enqueue("acme.com")
    up = rig.start("up")
    until(lambda: list(rig.folder.glob("pid-*")), "a page runs", process=up)

    answer = answered(rig, "pause", str(run_id), "--reason", "look at it")
    assert (answer["run"], answer["state"], answer["is_new"]) == (run_id, "paused", True)
    started = len(rig.jobs(JobState.RUNNING, stage="extract"))
    (rig.folder / "go").touch()
    until(lambda: not rig.jobs(JobState.RUNNING), "what runs has ended", process=up)
    succeeded = len(rig.jobs(JobState.SUCCEEDED, stage="extract"))
    assert succeeded >= started > 0, "what ran was committed"
    for pid in [*rig.worker_pids(up), up.pid]:
        os.kill(pid, signal.SIGKILL)
    up.wait()

    said(rig, "up", "--until-idle")
    assert len(rig.jobs(JobState.SUCCEEDED, stage="extract")) == succeeded
    assert rig.run(run_id).state is RunState.PAUSED
    said(rig, "resume", str(run_id))
    said(rig, "up", "--until-idle")
    assert rig.run(run_id).state is RunState.COMPLETED


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("start 77", 2, "there is no run 77"),
        ("resume 77", 2, "there is no run 77"),
        ("hold nobody.org", 2, "no source 'nobody.org'"),
        ("hold --job 77", 2, "there is no job 77"),
        ("hold acme.com --job 7", 2, "SOURCE or --job JOB, not both"),
        ("resume acme.com --from-checkpoint", 2, "takes up a run, not a source"),
        ("resume 77 --from-checkpoint", 2, "there is no run 77"),
    ],
)
def test_what_can_not_be_is_told_in_a_line(rig: Rig, words: str, code: int, message: str) -> None:
    told = said(rig, *words.split(), code=code)

    assert message in told
    assert "Traceback" not in told


def test_cancelled_backfill_is_continued_where_its_cursor_was(tmp_path: Path) -> None:
    """What was planned and not done is carried over, and planning goes on behind it."""
    with counting_site() as served:
        # So slow that it is still at work when it is cancelled, on a busy machine as well.
        source = source_of(served, ms=60, partitions=["continued"])
        with Rig(tmp_path, {"prices": source}, PRICES) as rig:
            queued = rig.penstock("backfill", "prices", *YEAR, "--yes", "--detach", "--json")
            run_id = json.loads(queued.stdout)["run"]
            process = rig.start("up")
            rig.wait_for_pages(run_id, 100, process)
            said(rig, "cancel", str(run_id), "--yes", "--reason", "too many at once")
            process.send_signal(signal.SIGTERM)
            process.wait()
            done = rig.run(run_id).succeeded

            answer = answered(rig, "resume", str(run_id), "--from-checkpoint")
            assert (answer["kind"], answer["is_new"]) == ("backfill", True)
            said(rig, "up", "--until-idle")

            assert rig.run(answer["run"]).state is RunState.COMPLETED
            asked = asked_for(served, "continued")
            assert len(asked) == 366
            # What was under way when it was cancelled is asked for again, and nothing else.
            assert sum(asked.values()) <= 366 + SHARE
            assert done > 0
            assert len(rig.store.records.of("price", limit=1000)) == 366
