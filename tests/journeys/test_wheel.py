"""The built wheel carries everything: installed into an empty environment, its demo runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


def run(*command: str | Path, cwd: Path) -> str:
    """The command's output; without the settings that a checkout or a shell could lend it."""
    lent = {"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "PENSTOCK_ENV"}
    env = {name: value for name, value in os.environ.items() if name not in lent}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT)
    run(sys.executable, *PIP, *build, cwd=ROOT)
    [built] = folder.glob("penstock-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment that has the wheel, its pinned needs and nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=True, symlinks=True)
    python = folder / "bin" / "python"
    runtime = ROOT / "requirements" / "runtime.txt"
    run(python, *PIP, "install", "--require-hashes", "-r", runtime, cwd=folder)
    run(python, *PIP, "install", "--no-deps", wheel, cwd=folder)
    return folder / "bin"


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    package = ROOT / "src" / "penstock"
    files = (file for file in package.rglob("*") if file.is_file())
    expected = {
        str(file.relative_to(package.parent)) for file in files if "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        licences = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
    assert held == expected
    assert len(licences) == 1


@pytest.mark.timeout(400)
def test_the_demo_runs_from_an_empty_environment(installed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    demo = json.loads(run(installed / "penstock", "demo", "--dir", folder, "--json", cwd=tmp_path))

    assert demo
    assert (folder / "penstock.yaml").is_file()
    origin = run(
        installed / "python", "-c", "import penstock; print(penstock.__file__)", cwd=tmp_path
    )
    assert Path(origin.strip()).is_relative_to(installed.parent)
    assert run(installed / "penstock", "--version", cwd=tmp_path).strip() == "penstock 0.1.0"
