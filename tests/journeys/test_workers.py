"""A worker that is stopped, killed or blocked: its jobs run again, once, and soon."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.jobs.job import JobState
from penstock.store.workers import LEASE_S
from tests.clocked import in_time
from tests.journeys.holding import (
    HOLDING,
    forget_held,
    holding_source,
    let_go,
    wait_until_held,
)
from tests.journeys.rig import CLOCK, CountingSite, Rig, counting_site, kill, until

RECOVERED_WITHIN_S = 3.0
BLOCKING = f"""
import time

from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    yield {{"number": 0}}


@pages.step(after="discover", unit="page", key="number", timeout="10m")
async def block(page, ctx):
    time.sleep({LEASE_S + 5})
    ctx.save("page", key="0", data={{}})
"""


@pytest.fixture(scope="module")
def site() -> Iterator[CountingSite]:
    with counting_site() as found:
        yield found


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def pages_on_record(rig: Rig, site: CountingSite) -> int:
    """How many of the pages that are held have their snapshot in the store."""
    return sum(
        rig.store.snapshots.of(job.id, f"{site.url}/page/{job.key}") is not None
        for job in rig.jobs(stage="hold")
    )


def test_killed_worker_is_followed_within_three_seconds_and_fetches_nothing_again(
    tmp_path: Path, site: CountingSite
) -> None:
    with Rig(tmp_path, {"shop": holding_source(4, site=site.url)}, HOLDING) as rig:
        [run_id] = rig.enqueue("shop")
        process = rig.start("up", "--until-idle")
        wait_until_held(rig, 4)
        until(lambda: pages_on_record(rig, site) == 4, "the pages are on record")
        first = rig.worker_pid(process)
        assert first is not None
        forget_held(rig)
        killed_at = CLOCK.now()
        kill(first)
        wait_until_held(rig, 4)
        let_go(rig)
        assert process.wait(timeout=120) == 0, rig.output(process)

        again = [event for event in rig.events("job.started") if event.attempt == 2]
        assert len(again) == 4
        in_time(max(event.at for event in again) - killed_at, RECOVERED_WITHIN_S)
        assert rig.run(run_id).state == "completed"
        records = rig.store.records.of("page")
        assert {row.data["seen"] for row in records} == {"snapshot"}
        assert {row.data["pid"] for row in records}.isdisjoint({first})
        counts = site.counts()
        assert [counts[f"/page/{number}"] for number in range(4)] == [1, 1, 1, 1]
        rig.assert_sound()


def test_worker_stopped_beyond_its_lease_writes_nothing_when_it_wakes(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(4)}, HOLDING) as rig:
        [run_id] = rig.enqueue("shop")
        process = rig.start("up")
        wait_until_held(rig, 4)
        stopped = rig.worker_pid(process)
        assert stopped is not None
        forget_held(rig)
        kill(stopped, signal.SIGSTOP)
        until(lambda: rig.events("worker.reaped"), "it is buried")
        wait_until_held(rig, 4)
        replacement = rig.worker_pid(process)
        assert replacement not in (None, stopped)
        let_go(rig)
        until(lambda: rig.run(run_id).is_ended, "the replacement has done the work")

        before = (rig.jobs(), rig.store.records.of("page"), rig.events())
        kill(stopped, signal.SIGCONT)
        until(lambda: is_gone(stopped), "the stopped worker has ended by itself")
        assert (rig.jobs(), rig.store.records.of("page"), rig.events()) == before

        assert {row.data["pid"] for row in rig.store.records.of("page")} == {replacement}
        assert {job.attempt for job in rig.jobs(stage="hold")} == {2}
        process.terminate()
        assert process.wait(timeout=120) == 0
        rig.assert_sound()


@pytest.mark.torture
def test_step_that_blocks_the_loop_beyond_the_lease_keeps_its_job(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(1)}, BLOCKING) as rig:
        [run_id] = rig.enqueue("shop")
        assert rig.start("up", "--until-idle").wait(timeout=120) == 0
        assert rig.run(run_id).state == "completed"
        assert [job.attempt for job in rig.jobs(JobState.SUCCEEDED, stage="block")] == [1]
        assert rig.events("worker.reaped") == []
        rig.assert_sound()
