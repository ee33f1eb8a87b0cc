"""Postgres, and the way to it, fail: nothing is lost, nothing is doubled, and work resumes automatically."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest

from penstock.clock import SystemClock
from penstock.engine.worker import loop as worker
from penstock.engine.worker import store_backoff as trouble
from penstock.errors import StoreError, StoreUnreachable
from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects, Save
from penstock.jobs.job import Claimed, JobState, NewJob
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.store.postgres import connection
from penstock.store.postgres import session as session_module
from penstock.store.postgres.connection import Connection
from penstock.store.postgres.store import PostgresStore
from tests.postgres.crowd import ask
from tests.postgres.fixtures import a_name
from tests.postgres.pgbouncer import PgBouncer
from tests.postgres.proxy import Fault, Proxy
from tests.postgres.server import Server
from tests.postgres.working import Working

Answer = TypeVar("Answer")
CLOCK = SystemClock()
COMMIT = "^COMMIT$"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again at once: how long is waited has tests of its own."""
    monkeypatch.setattr(trouble, "FIRST_S", 0.001)
    monkeypatch.setattr(trouble, "LONGEST_S", 0.01)
    monkeypatch.setattr(trouble, "RETRY_S", 0.01)
    monkeypatch.setattr(worker, "REVIEW_S", 0.01)


@pytest.fixture
def working(tmp_path: Path, database: str) -> Iterator[Working]:
    with Working(tmp_path, database, pages=40) as made:
        yield made


# A connection that is cut.


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("every", [3, 4, 7])
def test_commit_whose_answer_is_lost_each_so_often_is_written_once(
    working: Working, proxy: Proxy, every: int
) -> None:
    run_id = working.start_run()

    lost = working.work_until_done(
        proxy.through(working.url),
        lambda: proxy.fail_when(Fault.CUT_AFTER, lambda number: number % every == 0, at=COMMIT),
    )

    assert lost.happened > 3
    working.assert_everything_once(run_id)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("pages", "probability"),
    [
        pytest.param(60, 0.15, id="short"),
        pytest.param(3000, 0.15, marks=[pytest.mark.timeout(3600), pytest.mark.torture], id="long"),
    ],
)
def test_commits_whose_answers_are_lost_at_random_are_written_once(
    tmp_path: Path, database: str, proxy: Proxy, pages: int, probability: float
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with Working(tmp_path, database, pages=pages) as working:
        run_id = working.start_run()
        lost = working.work_until_done(
            proxy.through(database),
            lambda: proxy.fail_at_random(Fault.CUT_AFTER, probability, seed, at=COMMIT),
        )
        print(f"{lost.happened} of {lost.seen} answers to COMMIT were lost")
        assert lost.happened >= 5
        working.assert_everything_once(run_id)


@pytest.mark.usefixtures("hasty")
def test_commits_whose_answers_are_lost_before_a_pooler_are_written_once(
    working: Working, pgbouncer: PgBouncer
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    run_id = working.start_run()
    with Proxy(pgbouncer.port) as proxy:
        lost = working.work_until_done(
            proxy.through(working.url),
            lambda: proxy.fail_at_random(Fault.CUT_AFTER, 0.15, seed, at=COMMIT),
        )
        assert lost.happened >= 3
    working.assert_everything_once(run_id)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("fault", [Fault.CUT_BEFORE, Fault.CUT_AFTER], ids=["before", "after"])
def test_connection_cut_at_any_statement_changes_nothing_of_the_outcome(
    working: Working, proxy: Proxy, fault: Fault
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    run_id = working.start_run()

    cut = working.work_until_done(
        proxy.through(working.url), lambda: proxy.fail_at_random(fault, 0.03, seed)
    )

    assert cut.happened > 5
    working.assert_everything_once(run_id)


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("fault", [Fault.CUT_BEFORE, Fault.CUT_AFTER], ids=["before", "after"])
def test_connection_cut_at_every_statement_one_after_another(
    tmp_path: Path, postgres: Server, proxy: Proxy, fault: Fault
) -> None:
    """The n-th statement of a small run, then the n+1-st, until a run ends without a fault."""
    struck, number = True, 0
    while struck:
        number += 1
        name = f"{a_name()}_{fault.name.lower()}"
        url, folder = postgres.create_database(name), tmp_path / str(number)
        folder.mkdir()
        with Working(folder, url, pages=3) as working:
            run_id = working.start_run()
            proxy.heal()
            cut = working.work_until_done(
                proxy.through(url), partial(proxy.fail, fault, nth=number)
            )
            struck = cut.happened > 0
            working.assert_everything_once(run_id)
        postgres.drop_database(name)
    print(f"cut at {number - 1} statements, one after another")
    assert number > 50


@pytest.mark.usefixtures("hasty")
def test_end_of_a_job_that_fails_to_be_written_a_hundred_times_is_written(
    working: Working, proxy: Proxy
) -> None:
    run_id = working.start_run()
    times = 100
    ends = "state = 'succeeded'"

    lost = working.work_until_done(
        proxy.through(working.url),
        lambda: proxy.fail_when(Fault.CUT_BEFORE, lambda number: number <= times, at=ends),
    )

    assert lost.happened == times
    working.assert_everything_once(run_id)
    assert len([line for line in working.told if "can't reach" in line]) == 1, "once a minute"


# A connection that falls silent.

LEFT_AND_RIGHT = Plan((PlannedStage("left", "run"), PlannedStage("right", "run")))
PATIENCE_S = 1.5


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On both sides, so that a test need not wait as long as an operator."""
    begin = re.sub(
        r"(idle_in_transaction_session_timeout) = \d+", r"\1 = 1000", session_module.BEGIN
    )
    monkeypatch.setattr(session_module, "BEGIN", begin)
    monkeypatch.setattr(session_module, "PATIENCE_S", PATIENCE_S)
    monkeypatch.setattr(Connection, "patience_s", PATIENCE_S)


class Both:
    """A worker by way of the proxy and one beside it, with a job each of one run; and another's run."""

    def __init__(self, url: str, far_url: str) -> None:
        self.near = PostgresStore(url, CLOCK)
        self.far = PostgresStore(far_url, CLOCK)
        self.run_id, other_id = self._start("shop"), self._start("other")
        for name in ("left", "right"):
            self.near.workers.register(name, "here", 1, "test")
        claimed = self.near.turn("left", [], Capacity(10), {}).claimed
        ask(url, "UPDATE penstock.job SET worker = 'right' WHERE stage = 'right'")
        jobs = {(job.run_id, job.stage): job for job in claimed}
        self.fars, self.nears = jobs[self.run_id, "left"], jobs[self.run_id, "right"]
        self.others = jobs[other_id, "right"]

    def _start(self, source: str) -> int:
        [source_id] = self.near.sources.ensure([source]).values()
        about = (source_id, RunKind.FULL, LEFT_AND_RIGHT, "v")
        return self.near.runs.start(*about, key="1", actor="test")[0]

    def close(self) -> None:
        self.far.close()
        self.near.close()

    @staticmethod
    def settle(store: PostgresStore, job: Claimed) -> list[int]:
        end = Settlement(job.id, job.attempt, JobState.SUCCEEDED)
        return store.turn(job.stage, [end], Capacity(0), {}).settled


@pytest.fixture
def both(database: str, proxy: Proxy, impatient: None) -> Iterator[Both]:
    made = Both(database, proxy.through(database))
    yield made
    made.close()


@pytest.mark.parametrize("fault", [Fault.HANG_BEFORE, Fault.HANG_AFTER], ids=["before", "after"])
def test_silent_connection_is_given_up_and_holds_nobody_up_for_long(
    both: Both, proxy: Proxy, fault: Fault
) -> None:
    hung = proxy.fail(fault, at=COMMIT)
    errors: list[StoreError] = []

    def hang() -> None:
        try:
            both.settle(both.far, both.fars)
        except StoreError as error:
            errors.append(error)

    thread = threading.Thread(target=hang)
    thread.start()
    hung.wait()
    # Of another run: nothing stands in its way.
    assert both.settle(both.near, both.others) == [both.others.id]
    assert thread.is_alive()
    # Of the same run, whose row the silent one may have locked: the server ends its transaction.
    assert both.settle(both.near, both.nears) == [both.nears.id]
    thread.join(30)
    [error] = errors
    assert isinstance(error, StoreUnreachable)

    settled = both.settle(both.far, both.fars)
    assert settled == ([both.fars.id] if fault is Fault.HANG_BEFORE else [])
    run = both.near.runs.get(both.run_id)
    assert run is not None
    assert run.state == "completed"
    assert both.near.upkeep.check() == []


@pytest.mark.usefixtures("hasty", "impatient")
def test_worker_whose_connections_fall_silent_again_and_again_loses_and_doubles_nothing(
    working: Working, proxy: Proxy
) -> None:
    run_id = working.start_run()

    hung = working.work_until_done(
        proxy.through(working.url),
        lambda: proxy.fail_when(Fault.HANG_AFTER, lambda number: number in (40, 90, 130)),
    )

    assert hung.happened >= 3
    working.assert_everything_once(run_id)


def test_server_that_lets_in_and_says_nothing_is_unreachable(database: str, proxy: Proxy) -> None:
    proxy.black_hole()
    with pytest.raises(StoreUnreachable):
        PostgresStore(proxy.through(database) + "?connect_timeout=2", CLOCK)


def test_silence_is_noticed_within_fifteen_seconds() -> None:
    """On the worker's side, on the server's, and where bytes are not even acknowledged."""
    idle_ms = re.search(r"idle_in_transaction_session_timeout = (\d+)", session_module.BEGIN)
    assert idle_ms is not None
    assert connection.PATIENCE_S <= 15.0
    assert int(idle_ms[1]) <= 15_000
    assert int(connection.DEFAULTS["tcp_user_timeout"]) <= 15_000
    assert int(connection.DEFAULTS["connect_timeout"]) <= 15


# A schema that is changed meanwhile.


def test_column_that_is_added_under_load_costs_a_turn_at_most(working: Working) -> None:
    """A statement that was prepared before may be refused once, and never twice in a row."""
    run_id = working.start_run()
    refused: list[str] = []

    def try_twice(verb: Callable[[], Answer]) -> Answer:
        try:
            return verb()
        except StoreError as error:
            refused.append(error.message)
            return verb()

    with closing(PostgresStore(working.url, CLOCK)) as store:
        store.workers.register("w", "here", 1, "test")
        store.jobs.enqueue(run_id, [NewJob("extract", f"{n}", b"{}", 5) for n in range(60)])
        ends: list[Settlement] = []
        for number in range(61):
            turn = try_twice(partial(store.turn, "w", ends, Capacity(1), {}))
            ends = [_end_with_effects(job, number) for job in turn.claimed]
            try_twice(store.overview)
            if number % 10 == 5:
                _add_columns(working.url, number)
        assert len(turn.settled) == 1
        assert store.upkeep.check() == []
    print(f"refused {len(refused)} times: {sorted(set(refused))}")
    assert working.run(run_id).succeeded == 60


def _end_with_effects(job: Claimed, number: int) -> Settlement:
    save = Save("product", f"{number % 7}", b'{"n":%d}' % number, None, "replace")
    child = NewJob("persist", f"{number}", b"{}", 5)
    children = [child] if job.stage == "extract" else []
    effects = Effects(children=children, saves=[save])
    return Settlement(job.id, job.attempt, JobState.SUCCEEDED, effects=effects)


def _add_columns(url: str, number: int) -> None:
    tables = ask(
        url,
        "SELECT relname FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace"
        " WHERE nspname = 'penstock' AND relkind = 'r'",
    )
    for (table,) in tables:
        ask(url, f"ALTER TABLE penstock.{table} ADD COLUMN added_{number} integer")


def test_transaction_whose_connection_is_lost_does_not_go_on_with_another(database: str) -> None:
    """It would be written from its middle on, each statement by itself."""
    with closing(PostgresStore(database, CLOCK)) as store:
        with pytest.raises(StoreUnreachable), store._db.writing() as now:  # noqa: PT012
            store._db.do("add_sources", keys='["first"]', now=now)
            with suppress(StoreError), store._db._translated():
                raise psycopg.OperationalError("the server has gone away")
            store._db.do("add_sources", keys='["second"]', now=now)
        assert store.sources.ensure([]) == {}
        assert ask(database, "SELECT key FROM penstock.source") == []
