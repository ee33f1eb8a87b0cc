"""Hints that there is work: heard when they can be, and never waited for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from penstock.clock import SystemClock
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.store.postgres.connection import CONNECT_S
from penstock.store.postgres.store import PostgresStore
from tests.postgres.crowd import ask
from tests.postgres.proxy import Proxy
from tests.postgres.workspace import until

CLOCK = SystemClock()
PLAN = Plan((PlannedStage("work", "page"),))


class Pair:
    """One who makes work, and one who waits for some."""

    def __init__(self, database: str, through: str) -> None:
        self.maker = PostgresStore(database, CLOCK)
        self.waiter = PostgresStore(through, CLOCK)
        self._runs = 0

    def make_work(self) -> None:
        [source_id] = self.maker.ensure_sources(["shop"]).values()
        self._runs += 1
        self.maker.start_run(source_id, RunKind.FULL, PLAN, "v", key=f"{self._runs}", actor="t")

    def hears(self) -> None:
        until("a hint comes", self.waiter.has_changed, 10)


@pytest.fixture
def pair(database: str, proxy: Proxy) -> Iterator[Pair]:
    made = Pair(database, proxy.through(database))
    with closing(made.maker), closing(made.waiter):
        yield made


def test_hint_is_heard_and_heard_once(pair: Pair) -> None:
    pair.hears()  # listening has begun
    assert not pair.waiter.has_changed()

    pair.make_work()
    pair.hears()
    assert not pair.waiter.has_changed()


def test_own_hints_are_no_news(pair: Pair) -> None:
    pair.hears()
    [source_id] = pair.waiter.ensure_sources(["shop"]).values()
    pair.waiter.start_run(source_id, RunKind.FULL, PLAN, "v", key="own", actor="test")
    pair.waiter.now()

    assert not pair.waiter.has_changed()


def test_who_lost_the_listener_listens_again_and_looks_at_once(pair: Pair, database: str) -> None:
    pair.hears()
    for _ in range(3):
        ask(
            database,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND query LIKE 'LISTEN%'",
        )
        pair.hears()  # it can't know what it has missed


def test_nobody_waits_for_a_listener_that_gets_no_answer(pair: Pair, proxy: Proxy) -> None:
    """Who asks runs an event loop in the same thread."""
    proxy.black_hole(existing=False, new=True)
    began = CLOCK.monotonic()
    for _ in range(100):
        assert not pair.waiter.has_changed()
    assert CLOCK.monotonic() - began < CONNECT_S / 2
    assert pair.waiter.now() > 0

    pair.waiter.close()
    proxy.heal()


def test_hint_that_can_not_be_given_costs_nothing(pair: Pair, proxy: Proxy, database: str) -> None:
    from tests.postgres.proxy import Fault

    lost = proxy.fail(Fault.CUT_BEFORE, at="NOTIFY")
    [source_id] = pair.waiter.ensure_sources(["shop"]).values()
    run_id, _ = pair.waiter.start_run(source_id, RunKind.FULL, PLAN, "v", key="own", actor="t")
    lost.wait()

    assert pair.waiter.run(run_id) is not None
