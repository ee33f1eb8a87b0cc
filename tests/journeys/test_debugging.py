"""A step can be stopped in a debugger, in the terminal of who asks for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.journeys.rig import ENVIRONMENT, PENSTOCK, Rig

STEPS = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    yield {"url": "https://shop.test/1"}


@pages.step(after="discover", unit="page", key="url", timeout="100ms")
COLOURdef look(page, ctx):
    price = 42
    breakpoint()
    ctx.save("page", key="1", data={"price": price})
"""


@pytest.mark.parametrize("colour", ["async ", ""])
def test_breakpoint_stops_in_the_terminal_of_try_without_a_timeout(
    tmp_path: Path, colour: str
) -> None:
    with Rig(tmp_path, {"shop": {"pipeline": "steps:pages"}}, STEPS.replace("COLOUR", colour)):
        done = subprocess.run(
            [*PENSTOCK, "try", "shop", "https://shop.test/1", "--debug"],
            cwd=tmp_path, env=ENVIRONMENT, text=True, capture_output=True, timeout=60, check=False,
            input="import time; time.sleep(0.5)\np price * 2\nprice = 43\nc\n",
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "84" in done.stderr
        assert "43" in done.stdout


def test_breakpoint_in_a_worker_fails_the_attempt_and_nothing_hangs(tmp_path: Path) -> None:
    with Rig(
        tmp_path, {"shop": {"pipeline": "steps:pages"}}, STEPS.replace("COLOUR", "async ")
    ) as rig:
        done = rig.penstock("run", "shop")
        assert done.returncode == 4, done.stderr
        [job] = rig.jobs(stage="look")
        assert job.state == "quarantined"
