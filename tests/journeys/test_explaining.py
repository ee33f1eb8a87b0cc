"""Explaining by the real command: what it says is what the workers then do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.jobs.job import JobState
from tests.journeys.rig import Rig, until

STEPS = """
import time
from pathlib import Path

from penstock import Permanent, Pipeline

HERE = Path(__file__).parent
site = Pipeline("site")


@site.step(unit="run")
def discover(ctx):
    for number in range(4):
        yield {"n": number}


@site.step(after="discover", unit="page", key="n", timeout="60s")
def extract(page, ctx):
    if page["n"] == 3:
        raise Permanent("no price on the page")
    while not (HERE / "go").exists():
        time.sleep(0.01)
    yield page


@site.step(after="extract", unit="candidate")
def persist(page, ctx):
    ctx.save("page", key=str(page["n"]), data=page)
"""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    sources: dict[str, dict[str, Any]] = {
        "acme.com": {"pipeline": "steps:site", "limits": {"concurrency": 1}},
        "12": {"pipeline": "steps:site"},
    }
    with Rig(tmp_path, sources, STEPS) as made:
        yield made


def explained(rig: Rig, *words: str) -> dict[str, Any]:
    done = rig.penstock("explain", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def told(rig: Rig, *words: str, code: int = 0) -> str:
    done = rig.penstock(*words)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def closed(answer: dict[str, Any]) -> dict[str, str]:
    return {gate["gate"]: gate["command"] for gate in answer["gates"] if not gate["is_open"]}


def test_every_command_that_is_named_opens_its_gate(rig: Rig) -> None:
    """Follow what it says, one command after the other, until it says that it would start."""
    (rig.folder / "go").touch()
    told(rig, "run", "acme.com", "--draft")
    told(rig, "pause", "acme.com", "--reason", "they are moving")
    told(rig, "hold", "--reason", "a new disk")
    said = told(rig, "explain", "acme.com")
    assert "waits for you: penstock start 1; penstock unhold; penstock resume acme.com" in said
    assert "they are moving" in said

    typed = []
    while (command := explained(rig, "acme.com")["command"]) != "penstock up":
        assert command not in typed, "it did not help"
        typed.append(command)
        told(rig, *command.split()[1:])

    assert typed == ["penstock start 1", "penstock unhold", "penstock resume acme.com"]
    up = rig.start("up")
    until(lambda: rig.run(1).is_ended, "the run has ended", process=up)


def test_job_behind_a_full_lane_and_the_one_that_runs(rig: Rig) -> None:
    [run_id] = rig.enqueue("acme.com")
    up = rig.start("up")
    [running] = until(lambda: rig.jobs(JobState.RUNNING, stage="extract"), "one runs", process=up)

    answer = explained(rig, "--job", str(rig.jobs(JobState.QUEUED, stage="extract")[0].id))
    assert answer["verdict"] == "waits: 1 running of 1 at once"
    assert closed(answer) == {"slots": None}
    assert explained(rig, "--job", str(running.id))["verdict"].startswith("is running in ")

    (rig.folder / "go").touch()
    until(lambda: rig.run(run_id).is_ended, "the run has ended", process=up)


def test_finished_jobs_tell_their_story(rig: Rig) -> None:
    (rig.folder / "go").touch()
    told(rig, "run", "acme.com", code=3)
    [bad] = rig.jobs(JobState.QUARANTINED)
    good = rig.jobs(JobState.SUCCEEDED, stage="extract")[0]

    answer = explained(rig, "--job", str(bad.id))
    assert [(each["attempt"], each["outcome"]) for each in answer["attempts"]] == [
        (1, "quarantined")
    ]
    assert answer["command"] == f"penstock retry --job {bad.id}"
    shown = told(rig, "explain", "--job", str(bad.id))
    assert "no price on the page" in shown
    assert f"waits for you: penstock retry --job {bad.id}; penstock up" in shown

    answer = explained(rig, "--job", str(good.id))
    assert answer["verdict"] == "has ended: succeeded"
    assert answer["children"] == [{"stage": "persist", "state": "succeeded", "jobs": 1}]
    shown = told(rig, "explain", "--run", "1")
    assert "has ended: partial" in shown
    assert "penstock resume 1 --from-checkpoint" in shown


def test_source_without_work_and_its_last_run(rig: Rig) -> None:
    (rig.folder / "go").touch()
    assert "nothing to do; penstock run acme.com" in told(rig, "explain", "acme.com")
    told(rig, "run", "acme.com", code=3)

    shown = told(rig, "explain", "ACME.com")

    assert "nothing to do; penstock run acme.com" in shown
    assert "last run  1, partial" in shown
    assert "1 quarantined" in shown


def test_number_is_a_run_unless_a_source_is_called_so(rig: Rig) -> None:
    (rig.folder / "go").touch()
    rig.enqueue("acme.com")

    assert explained(rig, "1")["run"] == 1
    assert explained(rig, "12")["source"] == "12"


def test_projects_say_the_same_in_python(rig: Rig) -> None:
    rig.enqueue("acme.com")
    with Project.load(rig.folder) as project:
        project.hold("acme.com", actor="ann", reason="quiet")

        outlook = project.explain("acme.com")

        assert (outlook.stands, outlook.would_start) == ("person", False)
        assert outlook.command == "penstock unhold acme.com"
        assert project.unhold("acme.com", actor="ann")
        run = project.start_run("12", is_draft=True, actor="ann")
        assert project.explain(run=run.id).command == f"penstock start {run.id}"
        project.start(run.id, actor="ann", reason="go")
        assert project.require_run(run.id).state == "queued"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("explain", "explain what? A SOURCE, --run RUN or --job JOB"),
        ("explain acme.com --run 1", "explain what?"),
        ("explain nobody.org", "penstock.yaml has no source 'nobody.org'"),
        ("explain --run 77", "there is no run 77"),
        ("explain --job 77", "there is no job 77"),
        ("explain --job x", "'x' is not a number from 1 up"),
    ],
)
def test_what_can_not_be_explained_is_told_in_a_line(rig: Rig, words: str, message: str) -> None:
    said = told(rig, *words.split(), code=2)

    assert message in said
    assert "Traceback" not in said
