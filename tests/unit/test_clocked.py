"""A promise in seconds is given three tries, and every other one a single try."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres.workspace import ROOT

TESTS = """
import itertools, pathlib, pytest
from tests.clocked import in_time

tries = {"quick": 0, "busy": 0, "slow": 0, "wrong": 0}

@pytest.fixture
def folder(tmp_path):
    assert not list(tmp_path.iterdir()), "each try has its own"
    (tmp_path / "used").touch()

@pytest.mark.parametrize("name", tries)
def test_it(name, folder):
    tries[name] += 1
    assert name != "wrong"
    in_time({"quick": [0], "busy": [9, 0], "slow": [9, 9, 9]}[name][tries[name] - 1], 3)

def test_tries():
    assert tries == {"quick": 1, "busy": 2, "slow": 3, "wrong": 1}
"""


@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_who_is_too_slow_has_three_tries_and_who_is_wrong_has_one(
    tmp_path: Path, options: list[str]
) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.clocked"]\n')
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\n")
    (tmp_path / "test_them.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    assert "2 failed, 3 passed" in said
    assert "it took 9.00 s, and less than 3 s was promised" in said
