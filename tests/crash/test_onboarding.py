"""A source that is on its way when Penstock is killed is where it was, or one move further."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).parents[2]


def _sweep(*words: str, within_s: float) -> None:
    source = str(Path(penstock.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.onboarding_sweep", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([source, str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=within_s,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b0 violations", done.stdout), done.stdout


def test_source_whose_move_is_killed_is_where_it_was_or_one_move_further() -> None:
    _sweep("--points", "20", within_s=280)


@pytest.mark.torture
def test_source_is_killed_at_every_write_of_its_way() -> None:
    _sweep(within_s=1800)
