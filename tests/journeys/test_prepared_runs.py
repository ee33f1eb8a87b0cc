"""Drains through the real command: stage by stage, killed, sharded, alone on a file, and what they answer."""

from __future__ import annotations

import json
import random
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.app.views.drains import DrainFailed, DrainView
from penstock.errors import Refused
from penstock.jobs.job import JobState
from tests.journeys.holding import HOLDING, held, holding_source, let_go, wait_until_held
from tests.journeys.rig import Rig, until

STEPS = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"number": number}


@pages.step(after="discover", unit="page", key="number")
def extract(page, ctx):
    if page["number"] in ctx.params.get("bad", ()):
        raise ValueError("no price")
    return page


@pages.step(after="extract", unit="candidate")
def clean(page, ctx):
    return page


@pages.step(after="clean", unit="candidate")
def persist(page, ctx):
    ctx.save("page", key=str(page["number"]), data=page)


@pages.step(after="persist", unit="run", gather=True)
async def package(ctx):
    records = [record async for record in ctx.records("page")]
    ctx.save("report", key="all", data={"pages": len(records)})
"""
STAGES = ("discover", "extract", "clean", "package")


def source(pages: int, **params: Any) -> dict[str, Any]:
    return {
        "pipeline": "steps:pages",
        "params": {"pages": pages, **params},
        "retry": {"tries": 1},
    }


def prepared(rig: Rig, key: str = "dag-1") -> int:
    answer = rig.penstock("prepare", "shop", "--key", key)
    assert answer.returncode == 0, answer.stderr
    return int(answer.stdout)


def drain(rig: Rig, run_id: int, stage: str, *more: str) -> dict[str, Any]:
    """To its end, which must be a good one."""
    answer = rig.penstock("drain", str(run_id), stage, "--json", *more)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def test_run_is_drained_stage_by_stage_and_what_gathers_comes_last(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": source(30)}, STEPS) as rig:
        run_id = prepared(rig)
        assert prepared(rig) == run_id
        early = rig.penstock("drain", str(run_id), "package")
        assert early.returncode == 7
        assert (
            f"comes after clean, which is not done\n  penstock drain {run_id} clean" in early.stderr
        )
        idle = rig.penstock("up", "--until-idle")
        assert idle.returncode == 0
        assert [job.stage for job in rig.jobs()] == ["discover"], "workers leave it alone"

        ends = [drain(rig, run_id, stage) for stage in ("discover", "extract", "persist")]

        assert [end["step"] for end in ends] == ["discover", "extract", "clean"]
        assert ends[1]["done"]["succeeded"] == 30
        rows = json.loads(rig.penstock("drain", str(run_id), "--stages", "--json").stdout)
        assert [row["state"] for row in rows] == ["closed", "closed", "closed", "open"]
        assert rows[2]["steps"] == ["clean", "persist"]
        last = drain(rig, run_id, "package")
        assert (last["run_state"], last["counts"]["succeeded"]) == ("completed", 1)
        assert drain(rig, run_id, "extract")["ended"] == "closed", "again, at once"
        [report] = rig.store.records.of("report", limit=5)
        assert report.data == {"pages": 30}
        rig.assert_sound()


@pytest.mark.parametrize(
    ("pages", "kills"),
    [(120, 3), pytest.param(4_000, 60, marks=[pytest.mark.timeout(3600), pytest.mark.torture])],
)
def test_task_that_is_killed_and_run_again_loses_and_doubles_nothing(
    tmp_path: Path, pages: int, kills: int
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    with Rig(tmp_path, {"shop": source(pages)}, STEPS) as rig:
        run_id = prepared(rig)
        for stage in STAGES:
            for _ in range(kills if stage in ("extract", "clean") else 0):
                task = rig.start("drain", str(run_id), stage)
                goal = rng.randrange(pages)
                until(lambda: _ended(rig, stage) >= goal, f"{goal} ended", process=task)  # noqa: B023
                task.kill()
                task.wait()
            drain(rig, run_id, stage)

        assert rig.run(run_id).state == "completed"
        rig.assert_records({str(number) for number in range(pages)})
        rig.assert_sound()


def _ended(rig: Rig, stage: str) -> int:
    return len(rig.jobs(JobState.SUCCEEDED, stage=stage))


def test_on_a_file_a_drain_is_alone_and_says_so(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(2)}, HOLDING) as rig:
        run_id = prepared(rig)
        drain(rig, run_id, "discover")
        task = rig.start("drain", str(run_id), "hold")
        wait_until_held(rig, 2)

        second = rig.penstock("drain", str(run_id), "hold", "--shard", "1/2")

        assert second.returncode == 6
        assert "on SQLite a drain has the project to itself" in second.stderr
        assert "use Postgres" in second.stderr
        let_go(rig)
        assert task.wait(60) == 0, rig.output(task)
        rig.assert_sound()


def test_drain_that_can_not_go_on_stops_in_good_order_and_says_why(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(3)}, HOLDING, {"grace": "0s"}) as rig:
        run_id = prepared(rig)
        drain(rig, run_id, "discover")
        rig.penstock("pause", "shop", "--reason", "they are moving")
        paused = rig.penstock("drain", str(run_id), "hold", "--until", "idle", "--json")
        assert paused.returncode == 75, paused.stderr
        assert "they are moving" in json.loads(paused.stdout)["waits_for"]
        rig.penstock("resume", "shop")

        late = rig.penstock("drain", str(run_id), "hold", "--deadline", "1s", "--json")

        assert late.returncode == 75, late.stderr
        assert json.loads(late.stdout)["ended"] == "deadline"
        assert [(job.state, job.tries) for job in rig.jobs(stage="hold")] == [("queued", 0)] * 3
        let_go(rig)
        drain(rig, run_id, "hold")
        rig.assert_sound()


def test_program_that_stops_a_drain_decides_how_long_attempts_may_finish(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(3)}, HOLDING, {"grace": "1h"}) as rig:
        run_id = prepared(rig)
        drain(rig, run_id, "discover")
        project, stopping, ends = Project.load(tmp_path), threading.Event(), list[DrainView]()

        def drain_here() -> None:
            ends.append(project.drain(run_id, "hold", stopping=stopping, grace_s=0.0))

        thread = threading.Thread(target=drain_here)
        thread.start()
        wait_until_held(rig, 3)
        stopping.set()
        thread.join()

        assert ends[0].ended == "stopped"
        assert [(job.state, job.tries) for job in rig.jobs(stage="hold")] == [("queued", 0)] * 3
        let_go(rig)
        drain(rig, run_id, "hold")
        rig.assert_sound()


def test_failures_make_a_stage_partial_or_failed_and_can_be_drained_again(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": source(10, bad=[3, 7])}, STEPS) as rig:
        project = Project.load(tmp_path)
        run = project.runs.prepare("shop", key="dag-1", actor="airflow").run
        assert run is not None
        for stage in ("discover", "extract"):
            view = project.drain(run.id, stage)
        assert (view.ended, view.is_closed, view.state) == ("closed", True, "partial")
        assert (view.counts["quarantined"], view.errors[0].jobs) == (2, 2)
        assert "no price" in view.errors[0].error
        view.raise_if_failed()
        with pytest.raises(DrainFailed, match="no price"):
            view.raise_if_failed(partial="failed")
        assert rig.penstock("drain", str(run.id), "extract").returncode == 3
        for stage in ("clean", "package"):
            project.drain(run.id, stage).raise_if_failed("failed")
        assert project.runs.get(run.id).state == "partial"

        (tmp_path / "steps.py").write_text(STEPS.replace("raise ValueError", "str"))
        again = Project.load(tmp_path)
        view = again.drain(run.id, "extract", retry_failed=True)
        assert (view.state, view.done["succeeded"]) == ("ok", 2)
        assert again.drain(run.id, "clean").run_state == "completed"
        other = again.runs.start("shop", new=True).run
        assert other is not None
        with pytest.raises(Refused, match="only a prepared run"):
            again.drain(other.id, "discover")
        for each in (project, again):
            each.close()


def test_shards_on_a_server_do_each_job_once_beside_workers_that_leave_them_alone(
    tmp_path: Path, database: str
) -> None:
    sources = {"shop": holding_source(40), "other": holding_source(2)}
    with Rig(tmp_path, sources, HOLDING, {"slots": 4}, database) as rig:
        run_id = prepared(rig)
        drain(rig, run_id, "discover")
        up = rig.start("up")
        [other] = rig.enqueue("other")
        until(lambda: rig.run(other).running, "a worker works")

        tasks = [rig.start("drain", str(run_id), "hold", "--shard", f"{n}/2") for n in (1, 2)]
        until(lambda: len(_pids(rig, tasks)) == 2, "both drain")
        wait_until_held(rig, 4)
        drains = [row["drains"] for row in json.loads(rig.penstock("workers", "--json").stdout)]
        assert {f"run {run_id} hold 1/2", f"run {run_id} hold 2/2", ""} == set(drains)
        tasks[0].kill()
        let_go(rig)
        again = rig.start("drain", str(run_id), "hold", "--shard", "1/2")

        assert [task.wait(120) for task in (tasks[1], again)] == [0, 0], rig.output(again)
        assert rig.run(run_id).state == "completed"
        until(lambda: rig.run(other).is_ended, "the other run ends")
        until(lambda: not _drains(rig), "the drain that was killed is reaped")
        up.terminate()
        up.wait(60)
        assert len(held(rig)) == 40
        rig.assert_sound()


def _drains(rig: Rig) -> list[str]:
    return [worker.scope for worker in rig.store.workers.all() if worker.scope]


def _pids(rig: Rig, tasks: list[subprocess.Popen[str]]) -> list[int]:
    return [pid for task in tasks for pid in rig.worker_pids(task)]
