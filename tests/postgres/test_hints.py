"""Hints that there is work: heard when they can be, and never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.clock import SystemClock
from penstock.engine.worker import loop as worker
from penstock.engine.worker.calls import InOneThread
from penstock.engine.worker.store_listener import StoreListener
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.store.postgres.connection import CONNECT_S
from penstock.store.postgres.store import PostgresStore
from tests.clocked import in_time
from tests.postgres.crowd import ask
from tests.postgres.proxy import Fault, Proxy
from tests.postgres.working import Working, until_ended
from tests.postgres.workspace import until

CLOCK = SystemClock()
PLAN = Plan((PlannedStage("work", "page"),))
KILL_LISTENERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND query LIKE 'LISTEN%'
"""


class Pair:
    """One who makes work, and one who waits for some."""

    def __init__(self, database: str, through: str) -> None:
        self.maker = PostgresStore(database, CLOCK)
        self.waiter = PostgresStore(through, CLOCK)
        self._runs = 0

    def make_work(self) -> None:
        [source_id] = self.maker.sources.ensure(["shop"]).values()
        self._runs += 1
        self.maker.runs.start(source_id, RunKind.FULL, PLAN, "v", key=f"{self._runs}", actor="t")

    def hears(self) -> None:
        until("a hint comes", self.waiter.has_changed, 10)


@pytest.fixture
def pair(database: str, proxy: Proxy) -> Iterator[Pair]:
    made = Pair(database, proxy.through(database))
    with closing(made.maker), closing(made.waiter):
        yield made


def test_hint_is_heard_once_and_looked_after_once_more(pair: Pair) -> None:
    pair.hears()  # listening has begun
    assert not pair.waiter.has_changed()

    pair.make_work()
    pair.hears()
    pair.hears()  # what was made right after it got no hint of its own
    assert not pair.waiter.has_changed()


def test_own_hints_are_no_news(pair: Pair) -> None:
    pair.hears()
    [source_id] = pair.waiter.sources.ensure(["shop"]).values()
    pair.waiter.runs.start(source_id, RunKind.FULL, PLAN, "v", key="own", actor="test")
    pair.waiter.now()

    assert not pair.waiter.has_changed()


def test_who_lost_the_listener_listens_again_and_looks_at_once(pair: Pair, database: str) -> None:
    pair.hears()
    for _ in range(3):
        ask(database, KILL_LISTENERS)
        pair.hears()  # it can't know what it has missed


def test_nobody_waits_for_a_listener_that_gets_no_answer(pair: Pair, proxy: Proxy) -> None:
    """Who asks runs an event loop in the same thread."""
    proxy.black_hole(existing=False, new=True)
    began = CLOCK.monotonic()
    for _ in range(100):
        assert not pair.waiter.has_changed()
    in_time(CLOCK.monotonic() - began, CONNECT_S / 2)
    assert pair.waiter.now() > 0

    pair.waiter.close()
    proxy.heal()


def test_hint_that_can_not_be_given_costs_nothing(pair: Pair, proxy: Proxy, database: str) -> None:
    lost = proxy.fail(Fault.CUT_BEFORE, at="NOTIFY")
    [source_id] = pair.waiter.sources.ensure(["shop"]).values()
    run_id, _ = pair.waiter.runs.start(source_id, RunKind.FULL, PLAN, "v", key="own", actor="t")
    lost.wait()

    assert pair.waiter.runs.get(run_id) is not None


# A loop that waits.


async def is_woken(pair: Pair, listening: StoreListener, meanwhile: Callable[[], None]) -> None:
    """By the hint itself: nobody asks while it is waited for."""
    woken = asyncio.Event()
    listening.wake = woken.set
    meanwhile()
    await asyncio.wait_for(woken.wait(), 10)


def test_loop_that_waits_is_woken_by_a_hint_and_by_no_other(pair: Pair) -> None:
    async def wait() -> None:
        with (
            closing(InOneThread()) as calls,
            closing(StoreListener(pair.waiter, calls)) as listening,
        ):
            until("it listens", listening.has_changed, 10)
            own = asyncio.Event()
            listening.wake = own.set
            [source_id] = pair.waiter.sources.ensure(["shop"]).values()
            pair.waiter.runs.start(source_id, RunKind.FULL, PLAN, "v", key="own", actor="test")
            await is_woken(pair, listening, pair.make_work)
            assert not own.is_set()

    asyncio.run(wait())


def test_loop_is_woken_after_its_listener_was_lost(pair: Pair, database: str) -> None:
    async def wait() -> None:
        with (
            closing(InOneThread()) as calls,
            closing(StoreListener(pair.waiter, calls)) as listening,
        ):
            until("it listens", listening.has_changed, 10)
            ask(database, KILL_LISTENERS)
            until("it listens again", listening.has_changed, 10)
            await is_woken(pair, listening, pair.make_work)

    asyncio.run(wait())


# How long work waits for a worker that is idle.

SLACK_S = 1.0
ONE_PAGE = """
from penstock import Pipeline

quick = Pipeline("quick")


@quick.step(unit="run")
async def look(ctx):
    ctx.note("looked")
"""


@pytest.fixture
def working(tmp_path: Path, database: str) -> Iterator[Working]:
    with Working(tmp_path, database, steps=ONE_PAGE, pipeline="quick") as made:
        yield made


def waits_s(working: Working, runs: int, meanwhile: Callable[[], object] = int) -> list[float]:
    """How long each run waited until its job was started, by the database's clock."""
    ids = []
    for _ in range(runs):
        ids.append(working.start_run())
        meanwhile()
        until_ended(working, ids[-1])
    queued = {e.run_id: e.at for e in working.events("run.queued")}
    started = {e.run_id: e.at for e in working.events("job.started")}
    return [started[run_id] - queued[run_id] for run_id in ids]


def test_hint_wakes_an_idle_worker(working: Working, monkeypatch: pytest.MonkeyPatch) -> None:
    with working.at_work(working.url):
        waits_s(working, 1)
        monkeypatch.setattr(worker, "POLL_S", 120.0)
        until_idle(working)
        assert max(waits_s(working, 3)) < 30.0


def until_idle(working: Working) -> None:
    """Its last look that was due by the old interval is over."""
    looked_at = CLOCK.monotonic() + 1.5
    until("it has looked once more", lambda: CLOCK.monotonic() > looked_at)


def test_with_every_hint_lost_work_waits_no_longer_than_the_poll(
    working: Working, proxy: Proxy
) -> None:
    proxy.drop_notifications()
    with working.at_work(proxy.through(working.url)):
        waits_s(working, 1)
        found = waits_s(working, 5)
        in_time(max(found), worker.POLL_S + SLACK_S)
    assert proxy.notifications_dropped > 0


def test_with_its_listener_killed_all_the_time_work_waits_no_longer_than_the_poll(
    working: Working,
) -> None:
    def kill_listener() -> None:
        ask(working.url, KILL_LISTENERS)

    with working.at_work(working.url):
        waits_s(working, 1)
        found = waits_s(working, 5, meanwhile=kill_listener)
        in_time(max(found), worker.POLL_S + SLACK_S)
