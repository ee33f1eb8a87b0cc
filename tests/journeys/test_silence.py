"""Output that nobody reads and steps that read what is not theirs: work goes on."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from tests.journeys.rig import ENVIRONMENT, PENSTOCK, Rig, until

CHATTY = """
import sys

from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(40):
        yield {"number": number}


@pages.step(after="discover", unit="page", key="number")
async def talk(page, ctx):
    for _ in range(100):
        print("x" * 100)
    ctx.save("page", key=str(page["number"]), data={"heard": READ})
"""


def test_up_whose_output_nobody_reads_does_its_work_and_ends(tmp_path: Path) -> None:
    steps = CHATTY.replace("READ", "''")
    with Rig(tmp_path, {"shop": {"pipeline": "steps:pages"}}, steps) as rig:
        [run_id] = rig.enqueue("shop")
        with subprocess.Popen(
            [*PENSTOCK, "up", "--until-idle"],
            cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as process:  # fmt: skip
            until(lambda: rig.run(run_id).is_ended, "the run has ended", within_s=60)
            assert process.wait(timeout=60) == 0
        assert rig.run(run_id).state == "completed"
        assert rig.events("worker.reaped") == []


def test_a_step_that_reads_its_input_finds_it_empty_and_the_worker_drains_all_the_same(
    tmp_path: Path,
) -> None:
    steps = CHATTY.replace("READ", "sys.stdin.read()")
    with Rig(tmp_path, {"shop": {"pipeline": "steps:pages"}}, steps) as rig:
        [run_id] = rig.enqueue("shop")
        process = rig.start("up")
        until(lambda: rig.run(run_id).is_ended, "the run has ended", within_s=60)
        assert {row.data["heard"] for row in rig.store.records.of("page")} == {""}
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert rig.events("worker.reaped") == []
        rig.assert_sound()
