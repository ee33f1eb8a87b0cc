"""Workers while another release comes: they say what they run, and stop where it is required."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from tests.journeys.commands import run_command
from tests.journeys.rig import ENVIRONMENT, PENSTOCK, kill, until

# A page that does not end before the test says so.
STEPS = """
import time
from pathlib import Path

from penstock import Pipeline

WORD = "{word}"
things = Pipeline("things")


@things.step(unit="run")
def begin(ctx):
    Path("begun").touch()
    while not Path("may_end").exists():
        time.sleep(0.01)
    ctx.save("thing", key=WORD, data={{}})
"""
CONFIG = """\
project: at-work
store: sqlite:staging.db
sources:
  things: {pipeline: "at_work:things"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "penstock.yaml").write_text(CONFIG)
    (tmp_path / "penstock.staging.yaml").write_text("project: at-work\n")
    (tmp_path / "penstock.production.yaml").write_text("store: sqlite:production.db\n")
    return tmp_path


def penstock(folder: Path, *words: str) -> str:
    done = run_command(words, folder, ENVIRONMENT, 120.0)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def released(folder: Path, word: str) -> None:
    """Staging runs a release that says this word, and the folder is that."""
    (folder / "at_work.py").write_text(STEPS.format(word=word))
    penstock(folder, "--env", "staging", "release", "create", "--reason", word)


def promoted(folder: Path) -> None:
    way = ("--from", "staging", "--to", "production", "--reason", "tested", "--yes")
    penstock(folder, "release", "promote", *way)


@contextmanager
def up(folder: Path, environment: str) -> Iterator[subprocess.Popen[str]]:
    """A service at work on a page that does not end."""
    said = (folder / "said").open("w+")
    command = [*PENSTOCK, "--env", environment, "up"]
    penstock(folder, "--env", environment, "run", "things", "--detach")
    with subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdout=said, stderr=said, text=True
    ) as process:
        try:
            until((folder / "begun").exists, "a page is at work", process=process)
            yield process
        finally:
            if process.poll() is None:
                kill(process.pid)
            said.close()


def seen(folder: Path, environment: str) -> dict[str, Any]:
    with Project.open(folder, environment) as project:
        events = [
            (row.kind, row.detail)
            for row in project.connection.journal.events()
            if row.kind in ("worker.other_release", "run.completed")
        ]
        run = project.runs.list(limit=1).items[0]
        return {"events": events, "run": run.state, "release": project.status().release}


def test_production_finishes_its_work_and_stops_when_another_release_is_promoted(
    folder: Path,
) -> None:
    released(folder, "one")
    promoted(folder)
    with up(folder, "production") as process:
        status = json.loads(penstock(folder, "--env", "production", "status", "--json"))
        assert status["release"]["others"] == []
        released(folder, "two")
        promoted(folder)
        until(
            lambda: "then stopping" in (folder / "said").read_text(), "it says so", process=process
        )
        assert process.poll() is None, "work that has begun is finished"
        [other] = seen(folder, "production")["release"].others
        assert other.pid == process.pid
        shown = penstock(folder, "--env", "production", "status")
        assert "has loaded something else" in shown
        (folder / "may_end").touch()
        assert process.wait(60) == 7
    found = seen(folder, "production")
    assert [kind for kind, _ in found["events"]] == ["worker.other_release", "run.completed"]
    assert "; refused" in found["events"][0][1]
    assert found["run"] == "completed"
    assert "the release of production is" in (folder / "said").read_text()

    # The folder is the release already: a new service works.
    again = run_command(["--env", "production", "up", "--until-idle"], folder, ENVIRONMENT, 120.0)
    assert again.returncode == 0, again.stderr


def test_staging_says_so_and_goes_on(folder: Path) -> None:
    released(folder, "one")
    with up(folder, "staging") as process:
        released(folder, "two")
        until(lambda: "something" in (folder / "said").read_text(), "it says so", process=process)
        (folder / "may_end").touch()
        until(lambda: seen(folder, "staging")["run"] == "completed", "it works on", process=process)
        assert process.poll() is None
    found = seen(folder, "staging")
    assert [kind for kind, _ in found["events"]] == ["worker.other_release", "run.completed"]
    assert "refused" not in found["events"][0][1]
