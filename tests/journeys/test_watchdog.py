"""A step that blocks its worker, even the interpreter, is ended by its timeout; other sources go on."""

from __future__ import annotations

from pathlib import Path

from penstock.engine.worker.watchdog import PATIENCE_S, SUPERVISORS_PATIENCE_S
from penstock.jobs.job import JobState
from tests.clocked import in_time
from tests.journeys.rig import Rig, until

TIMEOUT_S = 2.0
BLOCKING = """
import ctypes
import pathlib
import time

from penstock import Pipeline

bad = Pipeline("bad")
good = Pipeline("good")


@bad.step(unit="run")
async def discover(ctx):
    yield {"number": 0}


@bad.step(after="discover", unit="page", key="number", timeout="2s")
async def page(ctx):
    BLOCK


@good.step(unit="run")
async def discover(ctx):
    for number in range(300):
        yield {"number": number}


@good.step(after="discover", unit="page", key="number")
async def keep(page, ctx):
    ctx.save("page", key=str(page["number"]), data={})
"""
# One attempt takes a whole core until it is ended; those after it stand still, and leave it to others.
SPINNING = """
    spun = pathlib.Path(__file__).with_name("spun")
    if not spun.exists():
        spun.touch()
        while True: pass
    time.sleep(600)
"""
SOURCES = {"bad": {"pipeline": "steps:bad"}, "good": {"pipeline": "steps:good"}}


def took_s(rig: Rig) -> float:
    """How long the first attempt at the blocking page took, until its worker was gone."""
    [first, *_] = [e.at for e in rig.events("job.started") if e.source == "bad" and e.attempt == 1
                   and e.job_id in {job.id for job in rig.jobs(stage="page")}]  # fmt: skip
    return rig.events("worker.reaped")[0].at - first


def test_a_step_that_spins_from_its_first_line_ends_in_quarantine_and_others_complete(
    tmp_path: Path,
) -> None:
    steps = BLOCKING.replace("BLOCK", SPINNING)
    with Rig(tmp_path, SOURCES, steps) as rig:
        bad, good = rig.enqueue("bad", "good")
        process = rig.start("up", "--until-idle")
        process.wait(timeout=240)
        assert rig.run(good).state == "completed"
        [job] = rig.jobs(JobState.QUARANTINED)
        assert (job.key, job.deaths) == ("0", 3)
        assert rig.run(bad).is_ended
        output = rig.output(process)
        assert "a step blocks the event loop past its timeout at steps.py:" in output
        assert f"job {job.id}" in output
        print(f"a step that spins, timeout 2 s: its worker was ended after {took_s(rig):.1f} s")
        in_time(took_s(rig), TIMEOUT_S + PATIENCE_S + 3)
        rig.assert_sound()


def test_a_step_that_holds_the_interpreter_in_c_is_ended_by_the_supervisor(tmp_path: Path) -> None:
    # A PyDLL call keeps the interpreter's lock: no other thread of the worker runs, its watchdog neither.
    steps = BLOCKING.replace("BLOCK", "ctypes.PyDLL(None).sleep(600)")
    with Rig(tmp_path, SOURCES, steps) as rig:
        _, good = rig.enqueue("bad", "good")
        process = rig.start("up")
        until(lambda: rig.events("worker.reaped"), "the worker is ended", within_s=120)
        until(lambda: rig.run(good).is_ended, "the other source goes on")
        assert rig.run(good).state == "completed"
        assert "did not respond past the timeout of a step that blocks it" in rig.output(process)
        print(f"a step that holds the interpreter: ended after {took_s(rig):.1f} s")
        in_time(took_s(rig), TIMEOUT_S + SUPERVISORS_PATIENCE_S + 3)
