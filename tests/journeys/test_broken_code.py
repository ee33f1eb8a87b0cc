"""Code or configuration that breaks while `up` works hurts the source it belongs to, and heals."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.job import JobState
from tests.journeys.rig import Rig, kill, until

STEPS = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    ctx.save("page", key=f"{ctx.source.key} {ctx.run.id}", data={})
"""
SOURCES = {"good": {"pipeline": "steps:pages"}, "bad": {"pipeline": "worse:pages"}}


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    (tmp_path / "worse.py").write_text(STEPS)
    return Rig(tmp_path, SOURCES, STEPS)


def replace_worker(rig: Rig, process: object) -> None:
    first = until(lambda: rig.worker_pid(process), "a worker works")  # type: ignore[arg-type]
    kill(first)
    until(lambda: rig.worker_pid(process) not in (None, first), "another follows")  # type: ignore[arg-type]


def test_a_syntax_error_in_one_module_stops_its_own_source_only(rig: Rig) -> None:
    with rig:
        process = rig.start("up")
        until(lambda: rig.worker_pid(process), "a worker works")
        (rig.folder / "worse.py").write_text("def broken(:\n")
        replace_worker(rig, process)
        until(lambda: "worse.py:1" in rig.output(process), "it is said which code is broken")
        # Queued as somebody would whose own copy of the code is whole.
        (rig.folder / "worse.py").write_text(STEPS)
        bad, good = rig.enqueue("bad", "good")
        until(lambda: rig.run(good).is_ended, "the other source goes on")
        assert rig.run(good).state == "completed"
        assert not rig.run(bad).is_ended
        assert rig.jobs(JobState.QUARANTINED) == []
        assert process.poll() is None

        process.terminate()
        assert process.wait(timeout=60) == 0
        assert rig.penstock("up", "--until-idle").returncode == 0
        until(lambda: not rig.jobs(JobState.QUEUED, JobState.RUNNING), "nothing is stuck")


def test_up_starts_although_one_source_can_not_be_loaded_and_names_it(rig: Rig) -> None:
    with rig:
        [good] = rig.enqueue("good")
        (rig.folder / "worse.py").write_text("import nothing_like_this\n")
        done = rig.penstock("up", "--until-idle")
        assert done.returncode == 0, done.stderr
        assert "sources.bad.pipeline: module 'worse' needs 'nothing_like_this'" in done.stderr
        assert rig.run(good).state == "completed"


def test_a_configuration_that_is_broken_for_a_while_is_waited_for(rig: Rig) -> None:
    with rig:
        config = (rig.folder / "penstock.yaml").read_text()
        [before] = rig.enqueue("good")
        process = rig.start("up")
        until(lambda: rig.run(before).is_ended, "a worker works")
        first = rig.worker_pid(process)
        assert first is not None
        (rig.folder / "penstock.yaml").write_text("project: [")
        kill(first)
        until(lambda: "penstock.yaml:" in rig.output(process), "it is said what is wrong")
        assert process.poll() is None
        (rig.folder / "penstock.yaml").write_text(config)
        [good] = rig.enqueue("good")
        until(lambda: rig.run(good).is_ended, "a worker works again", within_s=60)
        assert rig.run(good).state == "completed"
        assert rig.output(process).count("penstock.yaml:") == 1
