"""Rejects that several redrive at once are judged again once."""

from __future__ import annotations

import threading
from contextlib import closing
from functools import partial

from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.jobs.effects import Effects, Rejection
from penstock.jobs.job import JobState, NewJob
from penstock.jobs.outcome import Settlement
from penstock.jobs.redrive import redrive_plan
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.store.postgres.store import PostgresStore
from penstock.store.reject_rows import Redriven, RejectFilter
from tests.postgres.crowd import CLOCK, a_line, ask, in_threads, letting_go
from tests.postgres.test_races import deadlocks

WIDE = LaneLimits(concurrency=10_000, candidates=10_000)
PLAN = Plan((PlannedStage("find", "run"), PlannedStage("judge", "candidate", ("find",))))
ROUNDS, ITEMS = 20, 25


def reject_all(store: PostgresStore, source_id: int, key: str) -> None:
    """A run in which every candidate was rejected."""
    store.runs.start(source_id, RunKind.FULL, PLAN, "v1", key=key, actor="test")
    [root] = store.turn("w", [], Capacity(1), {source_id: WIDE}).claimed
    children = [NewJob("judge", f"{key}-{number}", b"{}") for number in range(ITEMS)]
    end = Settlement(root.id, root.attempt, JobState.SUCCEEDED, effects=Effects(children=children))
    found = store.turn("w", [end], Capacity(ITEMS), {source_id: WIDE}).claimed
    no = Effects(rejections=[Rejection("no_price", "no price")])
    store.turn(
        "w",
        [Settlement(job.id, job.attempt, JobState.SUCCEEDED, effects=no) for job in found],
        Capacity(0),
        {source_id: WIDE},
    )


def test_reject_that_four_redrive_in_the_same_moment_is_judged_again_once(database: str) -> None:
    with closing(PostgresStore(database, CLOCK)) as store:
        [source_id] = store.sources.ensure(["shop"]).values()
        store.workers.register("w", "here", 1, "test")
        for number in range(ROUNDS):
            reject_all(store, source_id, f"run-{number}")
    plan = redrive_plan(PLAN, {"judge"})
    told: list[Redriven] = []
    noting = threading.Lock()
    line = a_line(4)

    def redrive(name: str) -> None:
        with closing(PostgresStore(database, CLOCK)) as store, letting_go(line):
            for number in range(ROUNDS):
                wanted = RejectFilter(run_id=number + 1)
                key = f"{name}-{number}"
                line.wait()
                redriven = store.rejects.redrive(
                    source_id, plan, "v1", wanted, key=key, actor=name, reason=""
                )
                if redriven is not None:
                    with noting:
                        told.append(redriven)

    in_threads([partial(redrive, name) for name in "abcd"])

    assert sum(each.rejects for each in told) == ROUNDS * ITEMS
    [(jobs, keys)] = ask(
        database,
        "SELECT count(*), count(DISTINCT j.key) FROM penstock.job AS j"
        " JOIN penstock.run AS r ON r.id = j.run_id WHERE r.kind = 'replay'",
    )
    assert (jobs, keys) == (ROUNDS * ITEMS, ROUNDS * ITEMS)
    assert deadlocks(database) == 0
    with closing(PostgresStore(database, CLOCK)) as store:
        assert store.rejects.count(RejectFilter(open_only=True)) == 0
        assert store.upkeep.check() == []
