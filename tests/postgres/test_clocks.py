"""Only the database's clock counts: hosts whose own are an hour off take nothing early, late or away."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.clock import Clock
from penstock.engine.leader.leadership import Leadership
from penstock.engine.leader.scheduler import Scheduler
from penstock.engine.supervisor.watch import Watch
from penstock.engine.worker import loop as worker
from penstock.gates.capacity import Capacity
from penstock.gates.rates import RateRequest
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.store.postgres.store import PostgresStore
from penstock.store.workers import LEASE_S
from tests.clocked import in_time
from tests.postgres.crowd import ask
from tests.postgres.working import Working, until_ended

HOUR_S = 3600.0
SLACK_S = 1.5
ONE_STAGE = Plan((PlannedStage("work", "page"),))


class Off:
    """A machine's clock that is set wrong; how fast time passes it can't get wrong, unless it is told to."""

    def __init__(self, by_s: float) -> None:
        self.by_s = by_s
        self.passed_s = 0.0

    def now(self) -> float:
        return time.time() + self.by_s

    def monotonic(self) -> float:
        return time.monotonic() + self.passed_s


class Stepping(Off):
    """One that is set anew whenever somebody looks at it."""

    def __init__(self, seed: int) -> None:
        super().__init__(0.0)
        self._rng = random.Random(seed)
        self.steps = 0

    def now(self) -> float:
        self.steps += 1
        return time.time() + self._rng.choice((-HOUR_S, 0.0, HOUR_S))


AHEAD, BEHIND = Off(HOUR_S), Off(-HOUR_S)
BOTH = pytest.mark.parametrize("by_s", [HOUR_S, -HOUR_S], ids=["ahead", "behind"])


def open_store(url: str, clock: Clock) -> PostgresStore:
    return PostgresStore(url, clock)


@BOTH
def test_time_is_the_servers_in_whatever_zone_it_lives(database: str, by_s: float) -> None:
    [(zone,)] = ask(database, "SELECT current_setting('timezone')")
    assert zone == "Pacific/Chatham", "a zone that nobody gets right by accident"
    with closing(open_store(database, Off(by_s))) as store:
        before = time.time()
        now = store.now()
        [source_id] = store.sources.ensure(["shop"]).values()
        run_id, _ = store.runs.start(source_id, RunKind.FULL, ONE_STAGE, "v", key="1", actor="test")
        store.workers.register("w", "here", 1, "test")
        turn = store.turn("w", [], Capacity(1), {})
        after = time.time()
        run, [row] = store.runs.get(run_id), store.workers.all()
        assert run is not None
        told = [now, turn.now, run.created_at, run.started_at, store.journal.events()[-1].at]
        assert all(at is not None and before - 1 <= at <= after + 1 for at in told), told
        assert before - 1 <= row.lease_expires_at - LEASE_S <= after + 1


# Leases.


@BOTH
def test_host_whose_clock_is_off_steals_no_lease_and_sees_one_that_has_ended(
    database: str, by_s: float
) -> None:
    clock = Off(by_s)
    with closing(open_store(database, clock)) as store:
        store.workers.register("alive", "elsewhere", 1, "test")
        store.workers.register("dead", "elsewhere", 2, "test")
        watch = Watch(store, clock)
        for _ in range(5):  # a lease's time of looking, on the clock that runs evenly
            assert watch.look([]) == []
            clock.passed_s += 4.0
        assert [row.id for row in store.workers.all()] == ["alive", "dead"]

        ask(
            database,
            f"UPDATE penstock.worker SET lease_expires_at = {store.now()} WHERE id = 'dead'",
        )
        assert watch.look([]) == [("dead", 0)]
        assert [row.id for row in store.workers.all()] == ["alive"]


@BOTH
def test_leader_whose_clock_is_off_is_left_alone_and_leaves_others_alone(
    database: str, by_s: float
) -> None:
    with (
        closing(open_store(database, Off(by_s))) as store,
        closing(open_store(database, Off(-by_s))) as other,
    ):
        leads = Leadership(store, "scheduler", "one", Off(by_s))
        follows = Leadership(other, "scheduler", "two", Off(-by_s))
        assert leads.seek()
        assert not follows.seek()
        assert leads.is_trusted()
        assert leads.resign()
        assert other.leaders.lead("scheduler", "two", 10.0) is not None


# Due times.


def test_job_that_waits_is_started_neither_early_nor_late(database: str) -> None:
    with (
        closing(open_store(database, AHEAD)) as ahead,
        closing(open_store(database, BEHIND)) as behind,
    ):
        [source_id] = ahead.sources.ensure(["shop"]).values()
        ahead.runs.start(source_id, RunKind.FULL, ONE_STAGE, "v", key="1", actor="test")
        for store, name in ((ahead, "ahead"), (behind, "behind")):
            store.workers.register(name, "here", 1, "test")
        [job] = ahead.turn("ahead", [], Capacity(1), {}).claimed
        later = Settlement(job.id, job.attempt, JobState.WAITING, 1800.0, reason="in half an hour")
        due_at = ahead.turn("ahead", [later], Capacity(1), {}).next_due_at
        assert due_at is not None
        assert abs(due_at - ahead.now() - 1800.0) < 60.0
        for store, name in ((ahead, "ahead"), (behind, "behind")):
            assert store.turn(name, [], Capacity(1), {}).claimed == []

        ask(database, f"UPDATE penstock.job SET due_at = {ahead.now()} WHERE id = {job.id}")
        assert len(behind.turn("behind", [], Capacity(1), {}).claimed) == 1


@BOTH
def test_host_that_was_closed_is_open_when_the_database_says_so(database: str, by_s: float) -> None:
    with closing(open_store(database, Off(by_s))) as store:
        now = store.now()
        ask(
            database,
            f"INSERT INTO penstock.host VALUES ('shut', {now + 60}, ''), ('open', {now - 1}, '')",
        )
        assert set(store.hosts.closed()) == {"shut"}


def test_places_in_time_are_given_by_one_clock(database: str) -> None:
    with (
        closing(open_store(database, AHEAD)) as ahead,
        closing(open_store(database, BEHIND)) as behind,
    ):
        want = [RateRequest("shop", 2.0)]
        waits = [store.hosts.reserve(want)[0].wait_s for store in (ahead, behind, ahead, behind)]
    assert all(wait <= n * 0.5 + 0.01 for n, wait in enumerate(waits)), waits
    assert waits == sorted(waits)
    assert waits[-1] > 0.5


@BOTH
def test_schedule_fires_by_the_databases_clock(working: Working, by_s: float) -> None:
    working.source["schedule"] = {"every": "30m"}
    clock = Off(by_s)
    with working.project(clock=clock) as project, closing(open_store(working.url, clock)) as store:
        scheduler = Scheduler(project, store)
        scheduler.plan()
        [row] = store.schedules.all()
        assert row.next_due_at is not None
        assert abs(row.next_due_at - store.now() - 1800.0) < 60.0
        scheduler.tick()
        assert store.runs.newest() == []

        past = f"{store.now() - 1:.3f}"
        ask(working.url, f"UPDATE penstock.schedule SET next_due_at = {past}, look_at = {past}")
        scheduler.tick()
        scheduler.tick()
        assert len(store.runs.newest()) == 1


# Workers.

RETRYING = """
import asyncio

from penstock import Pipeline, Snooze

everything = Pipeline("everything")
seen = set()


@everything.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"n": number}


@everything.step(after="discover", unit="page", key="n")
async def extract(page, ctx):
    if page["n"] not in seen:
        seen.add(page["n"])
        await asyncio.sleep(0.2)
        raise Snooze(0.5)
    ctx.save("page", key=str(page["n"]), data={"at": ctx.now()})
"""


@pytest.fixture
def working(tmp_path: Path, database: str) -> Iterator[Working]:
    limits = {"concurrency": 6}
    with Working(tmp_path, database, pages=24, steps=RETRYING, limits=limits) as made:
        made.worker = {"slots": 3}
        yield made


def assert_nothing_early_or_late(working: Working, run_id: int) -> None:
    run = working.run(run_id)
    assert [job.error for job in working.jobs() if job.state == JobState.QUARANTINED] == []
    assert (run.state, run.inserted, run.unchanged) == ("completed", 24, 0)
    assert working.events("worker.reaped") == []
    snoozed = {e.job_id: e.at for e in working.events("job.snoozed")}
    again = {e.job_id: e.at for e in working.events("job.started") if e.attempt == 2}
    waits = [again[job_id] - at for job_id, at in snoozed.items()]
    assert len(waits) == 24
    assert min(waits) >= 0.5
    in_time(max(waits), 0.5 + worker.POLL_S + SLACK_S)
    times = [row.data["at"] for row in working.store.records.of("page", limit=100)]
    assert run.started_at is not None
    assert all(run.started_at <= at <= working.store.now() for at in times), "what steps are told"


def test_workers_an_hour_ahead_and_an_hour_behind_share_a_run(working: Working) -> None:
    run_id = working.start_run()
    with (
        working.at_work(working.url, "ahead", AHEAD),
        working.at_work(working.url, "behind", BEHIND),
    ):
        until_ended(working, run_id)
    assert {e.actor for e in working.events("job.started")} == {"ahead", "behind"}
    assert_nothing_early_or_late(working, run_id)


def test_clock_that_steps_by_an_hour_again_and_again_disturbs_nothing(working: Working) -> None:
    clock, run_id = Stepping(seed=1), working.start_run()
    with working.at_work(working.url, "stepping", clock):
        until_ended(working, run_id)
    assert_nothing_early_or_late(working, run_id)
