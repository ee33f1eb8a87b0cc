"""docs/testing.md shows tests that pass; and the files that a run is about."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock import Project
from penstock.demo.folder import template
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "testing.md"
INBOX = """
from penstock import Pipeline

inbox = Pipeline("inbox")


@inbox.step(unit="run")
async def read(ctx):
    for path in ctx.files():
        yield {"path": path}


@inbox.step(after="read", unit="page", key="path")
def keep(file, ctx):
    ctx.save("file", key=file["path"], data=file)
"""


def test_tests_of_the_document_pass(tmp_path: Path) -> None:
    for name, text in template("first"):
        (tmp_path / name).write_text(text)
    [example] = [
        block.partition("```")[0] for block in DOCUMENT.read_text().split("```python\n")[1:]
    ]
    (tmp_path / "test_products.py").write_text(example)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_products.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_every_name_of_the_testing_module_is_documented() -> None:
    text = DOCUMENT.read_text()
    for name in penstock.testing.__all__:
        assert name in text or name in ("Request", "VirtualLoop")


@pytest.mark.parametrize("landed", [None, "b.json"])
def test_run_of_a_watched_folder_has_the_files_that_landed_or_all_that_match(
    landed: str | None, tmp_path: Path
) -> None:
    (tmp_path / "inboxes.py").write_text(INBOX)
    (tmp_path / "penstock.yaml").write_text(
        "sources: {files: {pipeline: 'inboxes:inbox', schedule: {watch: './inbox/*.json'}}}"
    )
    (tmp_path / "inbox").mkdir()
    for name in ("a.json", "b.json", "c.txt"):
        (tmp_path / "inbox" / name).write_text("{}")
    clock = VirtualClock()
    with Project.load(tmp_path) as project:
        network = ScriptedNetwork.of_pages({})
        with Simulation(project, network, seed=1, clock=clock) as simulation:
            if landed is None:
                project.run("files")
            else:
                start_by_signal(project, str(tmp_path / "inbox" / landed))
            simulation.run()
        keys = [Path(row.key).name for row in project.records("file")]

    assert keys == (["a.json", "b.json"] if landed is None else [landed])


def start_by_signal(project: Project, path: str) -> None:
    """What a scheduler does when a file has landed."""
    from penstock.jobs.run import RunKind, RunOptions
    from penstock.jobs.signals import FILE_LANDED, SignalFacts

    source = project.source("files")
    graph = project.graph(source)
    facts = SignalFacts(1, FILE_LANDED, {"schedule": "watch", "files": [path]}, "files")
    project.connection.runs.start(
        project.source_ids["files"],
        RunKind.FULL,
        graph.plan(),
        project.version("files"),
        key="landed",
        actor="watch",
        options=RunOptions(signal=facts),
    )
