"""One source can't hurt another: not by the length of its queue, and not by hanging."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.jobs.job import JobState
from tests.clocked import in_time
from tests.journeys.rig import CountingSite, Rig, counting_site, source_of, until

FLOOD = 100_000
STARTS_WITHIN_S = 2.0
ROUNDS = 3
KEPT = 0.9
FLOODING = """
import asyncio

from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"number": number}


@pages.step(after="discover", unit="page", key="number")
async def touch(page, ctx):
    await asyncio.sleep(ctx.params["seconds"])
"""


@pytest.fixture(scope="module")
def site() -> Iterator[CountingSite]:
    with counting_site() as found:
        yield found


def test_one_job_beside_a_hundred_thousand_starts_within_two_seconds(tmp_path: Path) -> None:
    flood = {"pipeline": "steps:pages", "params": {"pages": FLOOD, "seconds": 0.2}}
    one = {"pipeline": "steps:pages", "params": {"pages": 1, "seconds": 0.0}}
    with Rig(tmp_path, {"flood": flood, "one": one}, FLOODING, {"grace": "1s"}) as rig:
        [flooding] = rig.enqueue("flood")
        process = rig.start("up")
        until(lambda: rig.run(flooding).queued > FLOOD * 0.99, "the queue is long", within_s=200)
        [run_id] = rig.enqueue("one")
        until(lambda: rig.run(run_id).is_ended, "the one is done")

        waits = waits_of(rig, run_id)

        print(f"started after {', '.join(f'{wait:.3f}' for wait in waits)} s")
        assert rig.run(run_id).state == "completed"
        assert rig.run(flooding).queued > FLOOD * 0.9
        in_time(max(waits), STARTS_WITHIN_S)
        process.terminate()
        assert process.wait(timeout=120) == 0


def waits_of(rig: Rig, run_id: int) -> list[float]:
    """How long each job of a run waited by the journal, for the run to be queued or the job before it."""
    events = rig.store.journal.events(run_id=run_id, after_id=0, limit=1000)
    [queued] = [event.at for event in events if event.kind == "run.queued"]
    started = [event.at for event in events if event.kind == "job.started"]
    return [later - earlier for earlier, later in zip([queued, *started], started, strict=False)]


def test_healthy_sources_keep_their_pace_beside_as_many_that_hang(
    tmp_path: Path, site: CountingSite
) -> None:
    healthy = [f"healthy-{number}" for number in range(10)]
    hanging = [f"hanging-{number}" for number in range(10)]
    sources = {
        name: source_of(site, 48, page_ms=150, host=number)
        for number, name in enumerate(healthy, 1)
    }
    endless = {
        "fetch": {"allow_private": True, "robots": False, "timeout": "10m"},
        "timeout": "10m",
    }
    for number, name in enumerate(hanging, 11):
        sources[name] = source_of(site, 8, page_ms=600_000, host=number, **endless)
    with Rig(tmp_path, sources, worker={"grace": "1s"}) as rig:
        process = rig.start("up")
        alone, beside = [], []
        for _ in range(ROUNDS):
            alone.append(pace_of(rig, healthy))
            stuck = rig.enqueue(*hanging)
            until(lambda: hung(rig) == 40, "forty pages hang")
            beside.append(pace_of(rig, healthy))
            for run_id in stuck:
                rig.store.runs.cancel(run_id, "test", "enough")
            until(lambda: hung(rig) == 0, "nothing hangs any more")
        print(f"alone {alone}, beside ten that hang {beside} pages a second")
        in_time(1 / max(beside), 1 / (KEPT * max(alone)))
        process.terminate()
        assert process.wait(timeout=120) == 0


def hung(rig: Rig) -> int:
    return sum(job.source.startswith("hanging") for job in rig.jobs(JobState.RUNNING))


def pace_of(rig: Rig, names: list[str]) -> float:
    """Run these sources; answers with the pages a second they made together."""
    run_ids = rig.enqueue(*names)
    until(lambda: all(rig.run(run_id).is_ended for run_id in run_ids), "they have ended")
    runs = [rig.run(run_id) for run_id in run_ids]
    assert {run.state for run in runs} == {"completed"}
    began = min(run.started_at or 0.0 for run in runs)
    ended = max(run.finished_at or 0.0 for run in runs)
    return round(sum(run.pages for run in runs) / (ended - began), 1)
