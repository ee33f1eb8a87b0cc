"""Postgres restarts as if it had crashed, at random, under real workers: every record once, on at once.

By the time that `restart_immediate` returns, the server takes connections again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.jobs.job import JobState
from tests.clocked import in_time
from tests.journeys.rig import CountingSite, Rig, counting_site, source_of, until
from tests.postgres.server import Server
from tests.postgres.working import UNHEARD

PAGE_MS = 30
CONCURRENCY = 8
# The promise, and what a machine that does ten other things is granted on top of it.
BACK_S = 5.0
SLACK_S = 3.0


@pytest.fixture
def site() -> Iterator[CountingSite]:
    with counting_site() as made:
        yield made


class Restarts:
    """Waits for some pages more, restarts, and waits until work goes on; again and again."""

    def __init__(self, rig: Rig, server: Server, run_id: int, rng: random.Random) -> None:
        self.rig = rig
        self.server = server
        self.run_id = run_id
        self.rng = rng
        self.waits_s: list[float] = []

    def restart(self, within: int) -> None:
        goal = self.rig.run(self.run_id).pages_done + self.rng.randint(1, within)
        self.rig.wait_for_pages(self.run_id, goal)
        self.server.restart_immediate()
        ready_at = self._now()
        started_at = until(lambda: self._started_after(ready_at), "a job is started again")
        self.waits_s.append(started_at - ready_at)

    def _now(self) -> float:
        self.rig.store.reopen()
        return self.rig.store.now()

    def _started_after(self, moment: float) -> float | None:
        events = self.rig.store.journal.events(limit=500)
        started = [e.at for e in events if e.kind == "job.started" and e.at >= moment]
        return min(started, default=None)


@pytest.mark.parametrize(
    ("pages", "restarts"),
    [
        pytest.param(600, 4, id="short"),
        pytest.param(9000, 100, marks=[pytest.mark.timeout(3600), pytest.mark.torture], id="long"),
    ],
)
def test_restarts_under_load_lose_nothing_and_cost_no_attempt(
    tmp_path: Path, own_postgres: Server, site: CountingSite, pages: int, restarts: int
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    url = own_postgres.create_database("restarted")
    source = source_of(site, pages, page_ms=PAGE_MS, limits={"concurrency": CONCURRENCY})
    with Rig(tmp_path, {"shop": source}, store=url) as rig:
        [run_id] = rig.enqueue("shop")
        up = rig.start("up")
        breaking = Restarts(rig, own_postgres, run_id, random.Random(seed))
        for _ in range(restarts):
            breaking.restart(within=pages // (2 * restarts))
        until(lambda: rig.run(run_id).is_ended, "the run has ended", within_s=120)
        up.terminate()
        assert up.wait(timeout=120) == 0, rig.output(up)
        print(f"on again after {max(breaking.waits_s):.2f} s at most, of {breaking.waits_s}")
        in_time(max(breaking.waits_s), BACK_S + SLACK_S)
        assert_whole(rig, site, pages)
        assert "Traceback" not in rig.output(up)


def assert_whole(rig: Rig, site: CountingSite, pages: int) -> None:
    rig.assert_sound()
    [run] = rig.store.runs.newest()
    assert run.state == "completed"
    assert (run.inserted, run.updated, run.unchanged) == (pages, 0, 0)
    rig.assert_records({f"/page/{number}" for number in range(pages)})
    counts = site.counts()
    assert {counts[f"/page/{number}"] for number in range(pages)} == {1}, "each was fetched once"
    assert len(rig.jobs(JobState.SUCCEEDED)) == 2 * pages + 1
    assert [job for job in rig.jobs() if job.tries or job.deaths] == []
    # A job has a second attempt only if nobody had begun the first.
    released = Counter(e.job_id for e in rig.events("job.released") if e.detail == UNHEARD)
    assert {job.id: job.attempt - 1 for job in rig.jobs() if job.attempt > 1} == dict(released)
