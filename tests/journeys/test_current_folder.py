"""Code that lies where an operator happens to stand, or has a name of Python's, never runs instead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.rig import ENVIRONMENT, Rig

STEPS = """
import random

from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    yield {"where": random.__file__}


@pages.step(after="discover", unit="page", key="where", isolation="process")
def look(page, ctx):
    ctx.save("page", key="worker", data=page)
    ctx.save("page", key="child", data={"where": random.__file__})
"""
TRAP = "from pathlib import Path\nPath(r'{marker}').touch()\n"
# As the console script does: it puts its own folder on the path, not the current one.
SCRIPT = [sys.executable, "-P", "-c", "import sys; from penstock.cli import main; sys.exit(main())"]
MODULE = [sys.executable, "-m", "penstock"]
SOURCE = {"shop": {"pipeline": "steps:pages"}}


def lay_traps(folder: Path, *names: str) -> Path:
    """Modules that leave a mark when they are imported."""
    marker = folder / "was-run"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(TRAP.format(marker=marker))
    return marker


@pytest.mark.parametrize(
    ("command", "traps"),
    [
        (SCRIPT, ("random.py", "penstock/__init__.py", "sitecustom.py", "msgspec.py")),
        (MODULE, ("random.py", "msgspec.py", "apsw.py")),
    ],
    ids=["script", "module"],
)
def test_modules_in_the_current_folder_run_in_no_process_of_ours(
    tmp_path: Path, command: list[str], traps: tuple[str, ...]
) -> None:
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    marker = lay_traps(here, *traps)
    with Rig(home, SOURCE, STEPS) as rig:
        done = subprocess.run(
            [*command, "run", "shop", "--project", str(home)],
            cwd=here, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert not marker.exists()
        assert {row.key for row in rig.store.records.of("page")} == {"worker", "child"}


def test_a_module_of_the_project_never_replaces_one_of_python(tmp_path: Path) -> None:
    with Rig(tmp_path, SOURCE, STEPS) as rig:
        marker = lay_traps(tmp_path, "random.py")
        done = rig.penstock("run", "shop")
        assert done.returncode == 0, done.stderr
        assert not marker.exists()
        seen = {row.data["where"] for row in rig.store.records.of("page")}
        assert seen.isdisjoint({str(tmp_path / "random.py")})


def test_a_pipeline_named_like_a_module_of_python_is_refused_with_the_way_out(
    tmp_path: Path,
) -> None:
    with Rig(tmp_path, {"shop": {"pipeline": "calendar:pages"}}, STEPS) as rig:
        (tmp_path / "calendar.py").write_text(STEPS)
        done = rig.penstock("run", "shop")
        assert done.returncode == 2
        assert "'calendar' is the name of a module of Python's standard library" in done.stderr
        assert "rename" in done.stderr
