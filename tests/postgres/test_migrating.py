"""Migrating a Postgres that is in use: killed anywhere it can be repeated, and nobody is held up for long."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

import penstock
from penstock.clock import SystemClock
from penstock.errors import StoreError
from penstock.gates.capacity import Capacity
from penstock.jobs.run import RunKind
from penstock.store.postgres import migrate
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.postgres.store import PostgresStore
from penstock.store.schema import Applied, migrations, parse
from tests.clocked import in_time
from tests.contract.scenes import SITE, WIDE, done, pages
from tests.postgres.catalog import definitions
from tests.postgres.fixtures import a_name
from tests.postgres.proxy import Fault, Proxy
from tests.postgres.server import Server
from tests.postgres.workspace import until

CLOCK = SystemClock()
NEWEST = migrate.newest()
EXPANDS = """-- expands
-- locks: job and event, for a moment
ALTER TABLE penstock.job ADD COLUMN colour text;
ALTER TABLE penstock.event ADD COLUMN weight integer NOT NULL DEFAULT 1;
CREATE TABLE penstock.paint (colour text PRIMARY KEY);
CREATE INDEX paint_colour ON penstock.paint (colour);
"""
CONTRACTS = f"""-- contracts: {NEWEST + 1}
-- locks: signal and source, for a moment
DROP TABLE penstock.signal;
ALTER TABLE penstock.source DROP COLUMN cooldown_reason;
"""
OUTSIDE = """-- expands
-- outside a transaction
-- locks: nothing
CREATE INDEX CONCURRENTLY IF NOT EXISTS event_kind ON penstock.event (kind);
CREATE INDEX CONCURRENTLY IF NOT EXISTS event_actor ON penstock.event (actor);
"""
TOO_LONG = EXPANDS + "SELECT pg_sleep(0.4);"


@contextmanager
def later(text: str | None) -> Iterator[None]:
    """While this lasts, the code has one more migration."""
    known = migrations(migrate.PACKAGE)
    if text:
        known = (*known, parse(f"{NEWEST + 1:04}_later", text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "migrations", lambda _: known)
        yield


def migrated(url: str) -> list[Applied]:
    with closing(PostgresDatabase(url, CLOCK, purpose="schema")) as schema:
        return list(schema.migrate("ops", ""))


@pytest.fixture
def schema(schema_database: str) -> str:
    return schema_database


@pytest.fixture
def working(schema: str) -> Iterator[PostgresStore]:
    """Somebody who works: a store with a worker that holds a lease."""
    store = PostgresStore(schema, CLOCK)
    store.workers.register("w", "here", 1, "test")
    yield store
    store.close()


# Killed anywhere.


class Sweep:
    """One migration, cut off at each of its statements in turn, each time in a new database."""

    def __init__(self, server: Server, proxy: Proxy, template: str, text: str | None) -> None:
        self._server = server
        self._proxy = proxy
        self._template = "template0" if text is None else template
        self._text = text

    def run(self, every: int = 1) -> int:
        """How many statements were cut off at; afterwards the schema must be the same every time."""
        expected = self._one(0, Fault.CUT_BEFORE)
        for number in range(1, 1000):
            if number % every:
                continue
            fault = Fault.CUT_AFTER if (number // every) % 2 else Fault.CUT_BEFORE
            found = self._one(number, fault)
            if found is None:
                return number
            assert found == expected, f"cut off at statement {number}"
        raise AssertionError("a migration of a thousand statements")

    def _one(self, number: int, fault: Fault) -> dict[str, Any] | None:
        """The schema after a cut at this statement and another try; None if there was no such one."""
        name = a_name()
        url = self._server.create_database(name, self._template)
        try:
            with later(self._text):
                cut = self._proxy.fail(fault, nth=number) if number else None
                with suppress(StoreError):
                    migrated(self._proxy.through(url))
                self._proxy.heal()
                if cut is not None and not cut.happened:
                    return None
                migrated(url)
                assert migrated(url) == []
            return definitions(url)
        finally:
            self._server.drop_database(name)


WAYS = {"expands": EXPANDS, "contracts": CONTRACTS, "outside": OUTSIDE, "makes": None}


@pytest.mark.parametrize("way", WAYS)
def test_migration_cut_off_anywhere_is_done_by_the_next_try(
    postgres: Server, proxy: Proxy, schema_template: str, way: str
) -> None:
    assert Sweep(postgres, proxy, schema_template, WAYS[way]).run(every=2) > 8


@pytest.mark.torture
@pytest.mark.parametrize("way", WAYS)
def test_migration_cut_off_at_every_statement_is_done_by_the_next_try(
    postgres: Server, proxy: Proxy, schema_template: str, way: str
) -> None:
    assert Sweep(postgres, proxy, schema_template, WAYS[way]).run() > 8


def test_migration_whose_backend_is_killed_in_the_middle_leaves_nothing(schema: str) -> None:
    before = definitions(schema)
    errors: list[StoreError] = []
    with later(EXPANDS + "SELECT pg_sleep(60);"):
        migrating = threading.Thread(target=collect_error, args=(schema, errors))
        migrating.start()
        kill_backend(schema, "pg_sleep", "PgSleep")
        migrating.join()
    assert len(errors) == 1
    assert definitions(schema) == before
    with later(EXPANDS):
        assert len(migrated(schema)) == 1


def collect_error(url: str, errors: list[StoreError]) -> None:
    try:
        migrated(url)
    except StoreError as error:
        errors.append(error)


@contextmanager
def old_snapshot(url: str) -> Iterator[None]:
    """Whoever builds an index meanwhile has to wait for this one, half-way."""
    with psycopg.connect(url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM penstock.event")
        yield


def kill_backend(url: str, words: str, waits_for: str = "virtualxid") -> None:
    """End the backend that does this, when it has come as far as waiting."""
    look = f"""
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE query LIKE '%{words}%' AND wait_event = '{waits_for}' AND pid <> pg_backend_pid()
          AND datname = current_database()"""
    with psycopg.connect(url, autocommit=True) as other:
        until(f"{words} waits", lambda: bool(other.execute(look.encode()).fetchall()))


def test_index_that_was_killed_half_made_is_made_anew(schema: str) -> None:
    errors: list[StoreError] = []
    with later(OUTSIDE):
        with old_snapshot(schema):
            builder = threading.Thread(target=collect_error, args=(schema, errors))
            builder.start()
            kill_backend(schema, "CREATE INDEX CONCURRENTLY")
            builder.join()
        assert len(errors) == 1
        [(left, is_valid)] = [row for row in definitions(schema)["indexes"] if not row[1]]
        assert "event_kind" in left
        assert not is_valid
        migrated(schema)
    assert all(is_valid for _, is_valid in definitions(schema)["indexes"])


def test_leftovers_of_killed_reindexing_are_told_and_dropped(schema: str) -> None:
    """F12: they pile up, cost every write, and nobody looks at them."""
    before = definitions(schema)["indexes"]
    for _ in range(5):
        with old_snapshot(schema), psycopg.connect(schema, autocommit=True) as connection:
            reindexing = threading.Thread(target=_reindex, args=(connection,))
            reindexing.start()
            kill_backend(schema, "REINDEX")
            reindexing.join()

    with closing(PostgresStore(schema, CLOCK)) as store:
        told = store.upkeep.check()
    assert len([line for line in told if "_ccnew" in line and "penstock db migrate" in line]) == 5
    with closing(PostgresDatabase(schema, CLOCK, purpose="schema")) as database:
        assert len(database.plan().leftovers) == 5
        assert len(database.clear_leftovers()) == 5
        assert database.plan().leftovers == []
    assert definitions(schema)["indexes"] == before


def _reindex(connection: psycopg.Connection[Any]) -> None:
    with suppress(psycopg.Error):
        connection.execute("REINDEX INDEX CONCURRENTLY penstock.event_pkey")


# At once.


OPEN = """
import sys
from penstock.clock import SystemClock
from penstock.store.postgres.store import PostgresStore
sys.stdin.readline()
store = PostgresStore(sys.argv[1], SystemClock())
print(store.upkeep.check())
store.close()
"""


def test_eight_processes_may_open_an_empty_database_at_once(database: str, schema: str) -> None:
    environment = {"PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, database],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    for each in processes:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()

    assert [each.communicate()[0] for each in processes] == ["[]\n"] * 8
    assert definitions(database) == definitions(schema)


# Beside those who work.


def turn(store: PostgresStore) -> None:
    store.turn("w", [], Capacity(1), {})


def test_migration_lets_the_others_through_while_it_can_not_have_its_lock(
    schema: str, working: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0
    with psycopg.connect(schema) as reader, later(EXPANDS):
        reader.execute("SELECT count(*) FROM penstock.event")

        def meanwhile(_: float) -> None:
            nonlocal tries
            tries += 1
            turn(working)
            if tries == 3:
                reader.rollback()

        monkeypatch.setattr(time, "sleep", meanwhile)
        [applied] = migrated(schema)

    assert tries == 3
    in_time(applied.took_s, 0.2)
    turn(working)


class Work:
    """Somebody who works as fast as it goes, with statements that were prepared long before."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_over = False
        self.runs = 0
        self.failures: list[StoreError] = []

    def __enter__(self) -> Work:
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()

    def wait_for_more(self) -> None:
        seen = self.runs
        until("another run has ended", lambda: self.runs > seen or bool(self.failures))

    def _work(self) -> None:
        with closing(PostgresStore(self._url, CLOCK)) as store:
            store.workers.register("w", "here", 1, "test")
            try:
                while not self._is_over:
                    self._run(store)
                    store.workers.beat("w")
            except StoreError as error:
                self.failures.append(error)
            store.workers.sign_off("w")

    def _run(self, store: PostgresStore) -> None:
        source_id = store.sources.ensure(["acme.com"])["acme.com"]
        key, limits = str(self.runs), {source_id: WIDE}
        store.runs.start(source_id, RunKind.FULL, SITE, "v", key=key, actor="test")
        claimed = store.turn("w", [], Capacity(100), limits).claimed
        ends = [done(job, children=pages(20)) for job in claimed]
        while ends:
            claimed = store.turn("w", ends, Capacity(100), limits).claimed
            ends = [done(job) for job in claimed]
        self.runs += 1


@pytest.mark.parametrize(
    "cycles",
    [20, pytest.param(1000, marks=[pytest.mark.torture, pytest.mark.timeout(1800)])],
)
def test_work_goes_on_while_the_schema_changes_again_and_again(schema: str, cycles: int) -> None:
    known, took_s = list(migrations(migrate.PACKAGE)), []
    with pytest.MonkeyPatch.context() as patch, Work(schema) as work:
        patch.setattr(migrate, "migrations", lambda _: tuple(known))
        for number in range(cycles):
            work.wait_for_more()
            act = f"DROP COLUMN c{number - 1}" if number % 2 else f"ADD COLUMN c{number} integer"
            text = f"-- expands\n-- locks: job\nALTER TABLE penstock.job {act};"
            known.append(parse(f"{NEWEST + 1 + number:04}_cycle", text))
            took_s += [each.took_s for each in migrated(schema)]

    assert work.failures == []
    assert len(took_s) == cycles
    in_time(max(took_s), 0.2)
    with closing(PostgresStore(schema, CLOCK)) as store:
        assert store.upkeep.check() == []
        assert {run.state for run in store.runs.newest(limit=100_000)} == {"completed"}


def test_migration_that_would_hold_its_locks_too_long_is_given_up(
    schema: str, working: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = definitions(schema)
    monkeypatch.setattr(migrate, "TRY_FOR_S", 0.0)

    with later(TOO_LONG), pytest.raises(StoreError, match="blocking workers"):
        migrated(schema)

    assert definitions(schema) == before
    working.workers.sign_off("w")
    with later(TOO_LONG):
        [applied] = migrated(schema)
    assert applied.took_s >= 0.4


def test_migration_whose_process_stands_still_is_ended_by_the_server(
    schema: str, working: PostgresStore, proxy: Proxy
) -> None:
    """When it has looked who works: the one place where it holds a lock and thinks."""
    stuck = proxy.fail(Fault.HANG_AFTER, at="LOCK TABLE")
    with later(CONTRACTS):
        migrating = threading.Thread(target=collect_error, args=(proxy.through(schema), []))
        migrating.start()
        stuck.wait()
        assert working.workers.beat("w"), "it has waited no longer than it had to"
        proxy.cut()
        migrating.join()


def test_migration_waits_for_another_one(schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(schema) as other, later(EXPANDS):
        other.execute(f"SELECT pg_advisory_xact_lock({migrate.LOCK})")
        with monkeypatch.context() as patch:
            patch.setattr(migrate, "TRY_FOR_S", 0.0)
            with pytest.raises(StoreError, match="another Penstock"):
                migrated(schema)
        monkeypatch.setattr(time, "sleep", lambda _: other.rollback())
        assert len(migrated(schema)) == 1


@pytest.mark.parametrize("way", ["schema", "pooled"])
def test_index_is_built_outside_a_transaction_beside_a_worker(
    schema: str, working: PostgresStore, way: str, request: pytest.FixtureRequest
) -> None:
    url = schema if way == "schema" else request.getfixturevalue("pgbouncer").through(schema)
    with later(OUTSIDE):
        [applied] = migrated(url)
    assert applied.migration.is_outside
    turn(working)
    assert any("event_kind" in row[0] for row in definitions(schema)["indexes"])


def test_role_with_a_statement_timeout_can_still_build_an_index(
    postgres: Server, schema: str
) -> None:
    slow = OUTSIDE + "SELECT pg_sleep(0.6);"
    with psycopg.connect(schema, autocommit=True) as connection:
        connection.execute(
            f"ALTER ROLE penstock IN DATABASE {schema.rpartition('/')[2]} SET statement_timeout = 500"
        )
    with later(slow):
        assert len(migrated(schema)) == 1
