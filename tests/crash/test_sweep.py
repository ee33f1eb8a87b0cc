"""Killed, cut off from power or failed by its disk at any point, a run ends as if nothing had happened."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(Path(penstock.__file__).parents[1]), str(ROOT)]),
}


def sweep(*words: str, within_s: float) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock.testing.crash", *words],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=within_s,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b0 violations", done.stdout), done.stdout


# Other points each time: what these few leave out another day's run meets, and `make torture` all of it.


def test_run_killed_at_a_write_loses_and_doubles_nothing() -> None:
    sweep("kill", "--points", "60", within_s=280)


def test_power_cut_loses_nothing_that_was_acknowledged() -> None:
    sweep("power", "--points", "40", within_s=280)


def test_disk_error_ends_in_a_clear_error_or_in_nothing_at_all() -> None:
    sweep("fail", "--points", "40", within_s=280)


@pytest.mark.parametrize("how", ["kill", "power", "fail"])
def test_backfill_that_is_interrupted_loses_and_doubles_nothing(how: str) -> None:
    sweep(how, "--of", "backfill", "--points", "15", within_s=280)


@pytest.mark.torture
@pytest.mark.parametrize(("how", "points"), [("kill", 1 << 30), ("power", 2000), ("fail", 1 << 30)])
def test_backfill_interrupted_anywhere_loses_and_doubles_nothing(how: str, points: int) -> None:
    sweep(how, "--of", "backfill", "--points", str(points), within_s=3600)


@pytest.mark.torture
def test_run_killed_at_every_write_loses_and_doubles_nothing() -> None:
    sweep("kill", within_s=3500)


@pytest.mark.torture
def test_power_cut_at_two_thousand_moments_loses_nothing_that_was_acknowledged() -> None:
    sweep("power", "--points", "2000", within_s=3500)


@pytest.mark.torture
def test_disk_error_at_every_operation_loses_and_doubles_nothing() -> None:
    sweep("fail", within_s=3500)
