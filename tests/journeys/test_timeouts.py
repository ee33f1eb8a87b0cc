"""A timeout holds for every kind of step: on the loop, in a thread, in a process."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.jobs.job import JobState
from tests.clocked import in_time
from tests.journeys.rig import Rig, until

TIMEOUT_S = 0.5
SLOW = """
import asyncio
import ctypes
import os
import time
from pathlib import Path

from penstock import Pipeline

here = Path(__file__).parent
pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"number": number, "hangs": number in ctx.params["hanging"]}


@pages.step(after="discover", unit="page", key="number", OPTIONS)
ASYNC def touch(page, ctx):
    if page["hangs"]:
        (here / f"pid-{os.getpid()}").touch()
        WAIT
    ctx.save("page", key=str(page["number"]), data={})
"""


def pipeline(wait: str, *, is_async: bool = False, options: str = "") -> str:
    text = SLOW.replace("WAIT", wait).replace("ASYNC def", "async def" if is_async else "def")
    return text.replace("OPTIONS", f'timeout="{TIMEOUT_S}s"{options}')


def source(pages: int, hanging: list[int]) -> dict[str, object]:
    return {
        "pipeline": "steps:pages",
        "params": {"pages": pages, "hanging": hanging},
        "limits": {"concurrency": 16},
        # It would spare the tries that are counted here.
        "breaker": "off",
    }


def assert_timed_out(rig: Rig, hanging: list[int], pages: int) -> None:
    """Each hanging page was tried four times, ended on time, and hurt no other."""
    quarantined = rig.jobs(JobState.QUARANTINED)
    assert {job.key for job in quarantined} == {str(number) for number in hanging}
    assert {(job.kind, job.tries, job.deaths) for job in quarantined} == {("transient", 4, 0)}
    ids = {job.id for job in quarantined}
    began = {(e.job_id, e.attempt): e.at for e in rig.events("job.started") if e.job_id in ids}
    ended = rig.events("job.retry_scheduled", "job.quarantined")
    took = [e.at - began[e.job_id, e.attempt] for e in ended if e.job_id in ids]
    assert len(took) == 4 * len(hanging)
    in_time(max(took), TIMEOUT_S + 2)
    rig.assert_records({str(number) for number in range(pages) if number not in hanging})
    rig.assert_sound()


def test_async_step_is_cancelled(tmp_path: Path) -> None:
    steps = pipeline("await asyncio.sleep(600)", is_async=True)
    with Rig(tmp_path, {"shop": source(8, [1, 4])}, steps) as rig:
        assert rig.penstock("run", "shop").returncode == 3
        assert_timed_out(rig, [1, 4], 8)
        assert len(rig.events("worker.started")) == 1


def test_thread_that_hangs_is_fenced_off_and_its_worker_recycled(tmp_path: Path) -> None:
    hanging = [0, 1, 2]
    with Rig(tmp_path, {"shop": source(20, hanging)}, pipeline("time.sleep(600)")) as rig:
        assert rig.penstock("run", "shop").returncode == 3
        assert_timed_out(rig, hanging, 20)
        # Twelve threads were lost, and a worker is recycled after eight.
        assert len(rig.events("worker.started")) == 2
        assert rig.events("worker.reaped") == []


def test_step_that_hangs_in_c_is_killed_with_its_process(tmp_path: Path) -> None:
    steps = pipeline("ctypes.CDLL(None).sleep(600)", options=', isolation="process"')
    with Rig(tmp_path, {"shop": source(6, [1, 3])}, steps) as rig:
        assert rig.penstock("run", "shop").returncode == 3
        assert_timed_out(rig, [1, 3], 6)
        assert len(rig.events("worker.started")) == 1
        pids = [int(path.name.partition("-")[2]) for path in tmp_path.glob("pid-*")]
        assert len(pids) == 8
        until(lambda: not any(map(is_there, pids)), "no process is left")


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
