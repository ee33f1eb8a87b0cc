"""PgBouncer before the tests' Postgres: nothing of a session outlasts a transaction."""

from __future__ import annotations

import psycopg
import pytest

from tests.postgres.pgbouncer import PgBouncer
from tests.postgres.proxy import Fault, Proxy


def test_two_clients_take_turns_on_one_session(pooled_database: str) -> None:
    with (
        psycopg.connect(pooled_database, autocommit=True) as one,
        psycopg.connect(pooled_database, autocommit=True) as other,
    ):
        [first, second] = (
            client.execute("SELECT pg_backend_pid()").fetchone() for client in (one, other)
        )
    assert first == second


def test_a_prepared_statement_is_gone_when_another_session_is_given(pooled_database: str) -> None:
    with (
        psycopg.connect(pooled_database, autocommit=True) as one,
        psycopg.connect(pooled_database) as other,
    ):
        one.execute("SELECT 1", prepare=True)
        other.execute("SELECT 1")
        with pytest.raises(psycopg.errors.InvalidSqlStatementName):
            one.execute("SELECT 1", prepare=True)


def test_start_up_options_are_refused(pooled_database: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="unsupported startup parameter"):
        psycopg.connect(pooled_database, options="-c statement_timeout=1000")


def test_a_network_that_fails_can_stand_before_it(pgbouncer: PgBouncer, database: str) -> None:
    with Proxy(pgbouncer.port) as proxy, psycopg.connect(database) as direct:
        direct.execute("CREATE TABLE seen AS SELECT 1 AS number")
        direct.commit()
        with psycopg.connect(proxy.through(database)) as client:
            client.execute("INSERT INTO seen VALUES (2)")
            proxy.fail(Fault.CUT_AFTER, at="COMMIT")
            with pytest.raises(psycopg.OperationalError):
                client.commit()
        assert len(direct.execute("SELECT * FROM seen").fetchall()) == 2


def test_its_console_says_how_it_pools(pgbouncer: PgBouncer) -> None:
    settings = {name: value for name, value, *_ in pgbouncer.admin("SHOW CONFIG")}
    assert settings["pool_mode"] == "transaction"
    assert settings.get("max_prepared_statements", "0") == "0"
