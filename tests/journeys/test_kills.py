"""Killed at random moments, restarted each time: every record once, every page settled."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from penstock.jobs.job import JobState
from penstock.prove import killer as killing
from penstock.prove.killer import Killer
from tests.journeys.rig import CountingSite, Rig, counting_site, source_of

CONCURRENCY = 8
PAGE_MS = 40


def survive(rig: Rig, pages: int, kills: int, rng: random.Random) -> dict[str, int]:
    """Work off a run in spite of a killer; answers how often whom it killed."""
    [run_id] = rig.enqueue("shop")
    killer = Killer(rig, rng, run_id, pages, kills)
    killing.survive(rig, killer, kills)
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
