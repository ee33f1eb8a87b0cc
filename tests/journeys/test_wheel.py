"""The package as it is installed: what the wheel holds, and that typed programs can rely on it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "penstock"

PROGRAM = """
from penstock import Context, Pipeline, Project, Reject
from penstock.errors import Refused
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock

shop = Pipeline("shop")


@shop.step(unit="run")
async def look(ctx: Context) -> None:
    response = await ctx.fetch(str(ctx.params["url"]))
    if not response.text:
        raise Reject("empty", code="empty")
    ctx.save("page", key=response.url, data={"text": response.text})


def states(project: Project) -> dict[int, str]:
    try:
        project.runs.start("acme.com", reason="a typed program")
    except Refused as error:
        print(error.code, error.remedy)
    return {run.id: run.state for run in project.runs.each("acme.com")}


def test_look() -> None:
    with Project.load(".") as project:
        network = ScriptedNetwork.of_pages({"https://acme.com": "text"})
        with Simulation(project, network, seed=1, clock=VirtualClock()) as simulation:
            simulation.run()
"""


@pytest.fixture(scope="module")
def site_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "site-packages")
    return folder / "site-packages"


def test_wheel_holds_every_file_of_the_package(site_packages: Path) -> None:
    ours = {p.relative_to(PACKAGE) for p in PACKAGE.rglob("*") if p.is_file()}
    ours = {path for path in ours if "__pycache__" not in path.parts}
    packed = site_packages / "penstock"
    assert {p.relative_to(packed) for p in packed.rglob("*") if p.is_file()} == ours
    assert Path("py.typed") in ours


def test_typed_program_passes_mypy_against_the_wheel(site_packages: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    # As installed, not as part of the program: without py.typed, its types would not be read.
    environment = {**os.environ, "PYTHONPATH": str(site_packages)}
    check = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "program.py"]
    done = subprocess.run(check, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
