"""A worker's process that was started early is the worker, or is gone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.engine.supervisor.early_worker import EarlyWorker
from tests.journeys.rig import ENVIRONMENT, PENSTOCK

STEPS = """
from pathlib import Path
from penstock import Pipeline
p = Pipeline("p")

@p.step(unit="run")
def work(ctx):
    ctx.save("words", key="of", data={"words": Path("/proc/self/cmdline").read_text().split(chr(0))})
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "penstock.yaml").write_text("project: p\nsources: {acme: {pipeline: 'steps:p'}}\n")
    return tmp_path


def penstock(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**ENVIRONMENT, "MARKED": str(folder)}
    command = [*PENSTOCK, *words, "--project", str(folder)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def marked(folder: Path) -> Iterator[str]:
    """The processes that got our variable of whoever started them."""
    for each in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"MARKED={folder}".encode() in each.read_bytes().split(b"\0"):
                yield each.parent.name
        except OSError:
            continue  # it has ended


def test_what_a_command_starts_first_is_its_worker(project: Path) -> None:
    assert penstock(project, "run", "acme").returncode == 0
    told = penstock(project, "records", "words", "--format", "jsonl").stdout
    assert "--early" in told
    assert not list(marked(project))


@pytest.mark.parametrize("words", [("run", "acne"), ("drain", "7", "work"), ("backfill", "acme")])
def test_a_command_that_comes_to_no_work_leaves_nothing_behind(
    project: Path, words: tuple[str, ...]
) -> None:
    assert penstock(project, *words).returncode != 0
    assert not list(marked(project))


def test_one_whose_starter_died_ends_by_itself() -> None:
    early = EarlyWorker()
    early.line.close()
    assert early.process.wait(60) == 0
    early.end()


def test_what_has_changed_since_it_was_started_is_not_worked_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment can't be changed any more, nor its folder."""
    early = EarlyWorker()
    assert early.tell([], [], {**os.environ, "LATER": "yes"}) is None
    assert early.process.poll() is not None

    early = EarlyWorker()
    monkeypatch.chdir(tmp_path)
    assert early.tell([], [], os.environ) is None
    assert early.process.poll() is not None


def test_one_that_has_died_is_not_taken() -> None:
    early = EarlyWorker()
    early.process.kill()
    early.process.wait()
    assert early.tell([], [], os.environ) is None
