"""SIGTERM and Ctrl-C drain: what runs finishes or is put back, and no try is spent."""

from __future__ import annotations

import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.jobs.job import JobState
from tests.clocked import in_time
from tests.journeys.holding import HOLDING, forget_held, holding_source, let_go, wait_until_held
from tests.journeys.rig import CLOCK, CountingSite, Rig, counting_site, source_of, until

# Beyond the grace, until everything is put back; and until both processes are gone, on a busy machine.
BEYOND_S = 1.0
ENDING_S = 120.0
BLOCKING = HOLDING.replace("await asyncio.sleep(0.01)", "import time; time.sleep(60)")


@pytest.fixture(scope="module")
def site() -> Iterator[CountingSite]:
    with counting_site() as found:
        yield found


def stop(
    rig: Rig, process: subprocess.Popen[str], grace_s: float, number: int = signal.SIGTERM
) -> None:
    """Signal the process; its worker must have put everything back within its grace and a second."""
    known = len(rig.events("worker.stopped"))
    signalled_at = CLOCK.now()
    process.send_signal(number)
    process.wait(timeout=ENDING_S)
    stopped = rig.events("worker.stopped")[known:]
    assert len(stopped) == 1, rig.output(process)
    in_time(stopped[0].at - signalled_at, grace_s + BEYOND_S)


def assert_nothing_was_spent(rig: Rig) -> None:
    assert rig.jobs(JobState.RUNNING) == []
    assert rig.store.workers.all() == []
    assert [job for job in rig.jobs() if job.tries or job.deaths] == []
    assert rig.store.upkeep.check() == []


@pytest.mark.parametrize(
    ("pages", "moments"),
    [
        (200, 4),
        pytest.param(8_000, 200, marks=[pytest.mark.timeout(1800), pytest.mark.torture]),
    ],
)
def test_run_drained_at_random_moments_spends_no_try(
    tmp_path: Path, site: CountingSite, pages: int, moments: int
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    source = source_of(site, pages, page_ms=50, limits={"concurrency": 8})
    with Rig(tmp_path, {"shop": source}, worker={"grace": "2s"}) as rig:
        [run_id] = rig.enqueue("shop")
        for _ in range(moments):
            process = rig.start("up")
            rig.wait_for_pages(run_id, rig.run(run_id).pages_done + rng.randint(1, 30))
            stop(rig, process, grace_s=2)
            assert process.returncode == 0, rig.output(process)
            assert_nothing_was_spent(rig)
        assert rig.start("up", "--until-idle").wait(timeout=120) == 0
        assert rig.run(run_id).state == "completed"
        assert_nothing_was_spent(rig)
        rig.assert_sound()
        rig.assert_records({f"/page/{number}" for number in range(pages)})


def test_work_that_outlasts_the_grace_is_put_back(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(6)}, HOLDING, {"grace": "1s"}) as rig:
        [run_id] = rig.enqueue("shop")
        process = rig.start("up")
        wait_until_held(rig, 4)
        stop(rig, process, grace_s=1)
        assert_nothing_was_spent(rig)
        assert len(rig.jobs(JobState.QUEUED, stage="hold")) == 6
        let_go(rig)
        assert rig.start("up", "--until-idle").wait(timeout=120) == 0
        assert rig.run(run_id).state == "completed"
        rig.assert_records({str(number) for number in range(6)})


def test_worker_that_can_not_listen_is_ended_after_its_grace(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(4)}, BLOCKING, {"grace": "1s"}) as rig:
        rig.enqueue("shop")
        process = rig.start("up")
        wait_until_held(rig, 1)
        stop(rig, process, grace_s=1)
        assert_nothing_was_spent(rig)


def test_second_sigterm_stops_now(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(4)}, HOLDING, {"grace": "60s"}) as rig:
        rig.enqueue("shop")
        process = rig.start("up")
        wait_until_held(rig, 4)
        process.terminate()
        patient_until = CLOCK.monotonic() + 0.5
        until(
            lambda: CLOCK.monotonic() > patient_until, "half a second has passed", process=process
        )
        assert process.poll() is None
        stop(rig, process, grace_s=0)
        assert_nothing_was_spent(rig)


def test_ctrl_c_puts_a_foreground_run_back_and_the_next_one_goes_on(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(5)}, HOLDING, {"grace": "1s"}) as rig:
        process = rig.start("run", "shop")
        wait_until_held(rig, 4)
        stop(rig, process, grace_s=1, number=signal.SIGINT)
        assert process.returncode == 130, rig.output(process)
        assert_nothing_was_spent(rig)
        forget_held(rig)
        let_go(rig)
        done = rig.penstock("run", "shop", "--json")
        assert done.returncode == 0, done.stderr
        assert len(rig.store.runs.newest()) == 1
        rig.assert_sound()
        rig.assert_records({str(number) for number in range(5)})
