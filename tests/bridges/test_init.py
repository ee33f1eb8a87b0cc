"""`penstock init --bridge`: a few lines for an orchestrator, in a new project or in one that is there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from penstock.cli.bridge_files import BRIDGES
from tests.bridges.scenes import rig_of
from tests.journeys.commands import run_command
from tests.journeys.rig import ENVIRONMENT

FILES = {bridge: f"orchestration/{name}" for bridge, (name, _, _) in BRIDGES.items()}


@pytest.mark.parametrize("bridge", sorted(BRIDGES))
def test_new_project_has_a_file_for_its_orchestrator(tmp_path: Path, bridge: str) -> None:
    made = run_command(["init", "shop", "--bridge", bridge], tmp_path, ENVIRONMENT, 60)

    assert made.returncode == 0, made.stderr
    text = (tmp_path / "shop" / FILES[bridge]).read_text()
    assert '"example.com"' in text
    assert f"penstock.bridges.{bridge}" in text
    assert len(text.splitlines()) < 25
    ast.parse(text)
    assert BRIDGES[bridge][2] in made.stdout
    assert (tmp_path / "shop" / "penstock.yaml").exists()


def test_project_that_is_there_gets_that_file_and_nothing_else(tmp_path: Path) -> None:
    with rig_of(tmp_path, 1) as rig:
        before = {path.name for path in tmp_path.iterdir()}
        made = rig.penstock("init", "--bridge", "prefect", "--bridge", "dagster")
        assert made.returncode == 0, made.stderr
        assert {path.name for path in tmp_path.iterdir()} == {*before, "orchestration"}
        assert '"shop"' in (tmp_path / FILES["dagster"]).read_text()

        (tmp_path / FILES["prefect"]).unlink()
        (tmp_path / FILES["dagster"]).write_text("mine")
        again = rig.penstock("init", "--bridge", "prefect", "--bridge", "dagster")
        assert again.returncode == 7
        assert "exists already; nothing was written" in again.stderr
        assert not (tmp_path / FILES["prefect"]).exists()
        assert (tmp_path / FILES["dagster"]).read_text() == "mine"

        unknown = rig.penstock("init", "--bridge", "luigi")
        assert unknown.returncode == 2
        assert "dagster" in unknown.stderr
