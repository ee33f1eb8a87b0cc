"""A command that was forked is the command that was started: same words, same end, a process of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.journeys.commands import run_command
from tests.journeys.rig import ENVIRONMENT, PENSTOCK

CONFIG = """
project: shop
sources:
  acme.com: {pipeline: "steps:pages"}
"""
# Every module that was imported before must not have remembered anything of another project.
STEPS = """
import os, sys

print(os.getcwd(), sys.argv[1:], os.environ.get("SAID"), sys.path[0])
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def look(ctx):
    pass
"""


@pytest.mark.parametrize(
    "words",
    [["sources"], ["runs", "--json"], ["run", "nothing"], ["--version"], ["what"]],
)
def test_it_says_and_ends_as_one_that_was_started(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "penstock.yaml").write_text(CONFIG)
    (tmp_path / "steps.py").write_text(STEPS)
    environment = {**ENVIRONMENT, "SAID": "hello"}
    started = subprocess.run(
        [*PENSTOCK, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    forked = run_command(words, tmp_path, environment, within_s=60)
    assert (forked.returncode, forked.stdout) == (started.returncode, started.stdout)
    assert forked.stderr == started.stderr


def test_one_that_is_killed_says_by_what(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(CONFIG)
    (tmp_path / "steps.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    assert run_command(["sources", "--check"], tmp_path, ENVIRONMENT, within_s=60).returncode == -9


def test_one_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(CONFIG)
    (tmp_path / "steps.py").write_text("import time\ntime.sleep(600)\n")
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(["run", "acme.com"], tmp_path, ENVIRONMENT, within_s=1)
