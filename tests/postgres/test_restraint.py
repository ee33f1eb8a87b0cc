"""A worker that is far from the database leaves most of the work to those who are near."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from penstock.clock import SystemClock
from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.jobs.job import JobState, NewJob
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.store.postgres.restraint import FAR_S, REST, halved
from penstock.store.postgres.store import PostgresStore
from penstock.store.turn.turn import Turn
from tests.postgres.proxy import Proxy

CLOCK = SystemClock()
LIMITS = LaneLimits(concurrency=8)


@contextmanager
def far_worker(database: str, proxy: Proxy) -> Iterator[PostgresStore]:
    """With twenty jobs to do, and a way to the database that takes longer than any near one."""
    with closing(PostgresStore(proxy.through(database), CLOCK)) as far:
        far.workers.register("far", "far away", 1, "test")
        [source_id] = far.sources.ensure(["shop"]).values()
        plan = Plan((PlannedStage("work", "page"),))
        run_id, _ = far.runs.start(source_id, RunKind.FULL, plan, "v", key="1", actor="test")
        far.jobs.enqueue(run_id, [NewJob("work", f"{n}", b"null", 5) for n in range(20)])
        proxy.delay(to_server_s=FAR_S, to_client_s=FAR_S)
        for _ in range(6):
            far.workers.beat("far")  # it learns how long the way is
        yield far


def turn(store: PostgresStore, *ends: Settlement, slots: int = 20) -> Turn:
    [source_id] = store.sources.ensure(["shop"]).values()
    return store.turn("far", ends, Capacity(slots), {source_id: LIMITS})


def test_who_is_far_and_not_alone_takes_half_a_lane_and_then_rests(
    database: str, proxy: Proxy
) -> None:
    with far_worker(database, proxy) as far, closing(PostgresStore(database, CLOCK)) as near:
        near.workers.register("near", "here", 2, "test")
        began = CLOCK.monotonic()
        first = turn(far)
        took_s = CLOCK.monotonic() - began
        assert len(first.claimed) == LIMITS.concurrency // 2
        assert 0 < first.rest_s <= REST * took_s
        assert turn(far, slots=0).rest_s == 0, "nobody was kept waiting"


def test_who_is_far_and_alone_takes_all_there_is(database: str, proxy: Proxy) -> None:
    with far_worker(database, proxy) as far:
        first = turn(far)
        assert (len(first.claimed), first.rest_s) == (LIMITS.concurrency, 0.0)


def test_who_comes_near_again_rests_no_more(database: str, proxy: Proxy) -> None:
    with far_worker(database, proxy) as far, closing(PostgresStore(database, CLOCK)) as near:
        near.workers.register("near", "here", 2, "test")
        claimed = turn(far).claimed
        proxy.delay()
        far.workers.beat("far")
        ends = [Settlement(job.id, job.attempt, JobState.SUCCEEDED) for job in claimed]
        settled = turn(far, *ends)
        assert (len(settled.settled), settled.rest_s) == (LIMITS.concurrency // 2, 0.0)


@pytest.mark.parametrize(("whole", "half"), [(8, 4), (3, 1), (1, 1)])
def test_half_a_lane_is_never_none(whole: int, half: int) -> None:
    assert halved({1: LaneLimits(whole, whole, 2.0)}) == {1: LaneLimits(half, half, 2.0)}
