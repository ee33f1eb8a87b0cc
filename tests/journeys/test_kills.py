"""Killed at random moments, restarted each time: every record once, every page settled."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from penstock.jobs.job import JobState
from penstock.jobs.transitions import OPEN_JOB_STATES
from tests.journeys.rig import CLOCK, CountingSite, Rig, counting_site, kill, source_of, until

VICTIMS = ("worker", "supervisor", "both")
CONCURRENCY = 8
PAGE_MS = 40
# From its start until it has taken over what its predecessor left, a command needs about this long.
STARTING_S = 1.2


class Killer:
    """Kills at moments that a seed chooses: while a process starts, or after some pages more.

    A job under which three workers died is taken for poison, and rightly so. Therefore two kills in
    a row never come while a process starts, and a kill after progress waits until the jobs that
    died before have been settled: no job of this journey dies three times.
    """

    def __init__(self, rig: Rig, rng: random.Random, run_id: int, pages: int, kills: int) -> None:
        self.rig = rig
        self.rng = rng
        self.run_id = run_id
        # On average half of this between two kills, and as many again while those that died are settled.
        self.most = 3 * pages // (4 * kills)
        self.is_after_start = True
        self.deaths: dict[str, int] = dict.fromkeys(VICTIMS, 0)

    def wait(self, process: subprocess.Popen[str]) -> bool:
        """Wait for the next moment; False if the process ended before it came."""
        self.is_after_start = self.is_after_start or self.rng.random() < 0.7
        if self.is_after_start:
            self._wait_for_progress(process)
        else:
            ends_at = CLOCK.monotonic() + self.rng.uniform(0.0, STARTING_S)
            until(lambda: CLOCK.monotonic() >= ends_at, "the moment comes", process=process)
        self.is_after_start = not self.is_after_start
        return process.poll() is None

    def _wait_for_progress(self, process: subprocess.Popen[str]) -> None:
        until(self._no_job_has_died, "the jobs that died are settled", process=process)
        goal = self.rig.run(self.run_id).pages_done + self.rng.randint(0, self.most)
        self.rig.wait_for_pages(self.run_id, goal, process)

    def _no_job_has_died(self) -> bool:
        return not any(job.deaths for job in self.rig.jobs(*OPEN_JOB_STATES))

    def strike(self, process: subprocess.Popen[str]) -> bool:
        """Kill someone; True if the supervisor is dead."""
        victim = self.rng.choice(VICTIMS)
        worker = self.rig.worker_pid(process)
        if victim != "supervisor" and worker is not None:
            kill(worker)
        if victim != "worker":
            process.kill()
            process.wait()
        self.deaths[victim] += 1
        return victim != "worker"


def survive(rig: Rig, pages: int, kills: int, rng: random.Random) -> dict[str, int]:
    """Work off a run in spite of a killer; answers how often whom it killed."""
    [run_id] = rig.enqueue("shop")
    killer = Killer(rig, rng, run_id, pages, kills)
    process = rig.start("up", "--until-idle")
    while sum(killer.deaths.values()) < kills and killer.wait(process):
        if killer.strike(process):
            process = rig.start("up", "--until-idle")
    assert process.wait(timeout=120) == 0, rig.output(process)
    return killer.deaths


def assert_whole(rig: Rig, site: CountingSite, pages: int) -> None:
    rig.assert_sound()
    [run] = rig.store.runs.newest()
    assert run.state == "completed"
    assert (run.pages, run.pages_done, run.candidates) == (pages, pages, pages)
    # A second save of the same record would be counted as unchanged.
    assert (run.inserted, run.updated, run.unchanged, run.rejected) == (pages, 0, 0, 0)
    assert len(rig.jobs(JobState.SUCCEEDED)) == 2 * pages + 1
    rig.assert_records({f"/page/{number}" for number in range(pages)})
    counts = site.counts()
    asked = [counts[f"/page/{number}"] for number in range(pages)]
    assert min(asked) >= 1
    # Who is asked again had been asked by an attempt that died before it could store the answer.
    again = sum(job.attempt - 1 for job in rig.jobs(stage="extract"))
    assert sum(asked) <= pages + again


@pytest.mark.parametrize(
    ("pages", "kills"),
    [
        (300, 8),
        pytest.param(12_000, 300, marks=[pytest.mark.timeout(1800), pytest.mark.torture]),
    ],
)
def test_run_killed_at_random_moments_has_every_record_once(
    tmp_path: Path, pages: int, kills: int
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with counting_site() as site:
        source = source_of(site, pages, page_ms=PAGE_MS, limits={"concurrency": CONCURRENCY})
        with Rig(tmp_path, {"shop": source}) as rig:
            deaths = survive(rig, pages, kills, random.Random(seed))
            print(f"killed {deaths}")
            assert sum(deaths.values()) == kills
            assert_whole(rig, site, pages)
