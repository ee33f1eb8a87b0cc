"""The tests' own Postgres: what it promises to those who test with it."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg
import pytest

from tests.postgres.server import Server


def ask(url: str, question: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(question.encode()).fetchone()
        return row and row[0]


@pytest.mark.parametrize("turn", ["one", "another"])
def test_each_test_gets_an_empty_database_of_its_own(database: str, turn: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE mine (id int)")
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    assert ask(database, tables) == 1


def test_who_comes_in_is_an_ordinary_role_that_owns_its_database(database: str) -> None:
    is_superuser = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
    assert ask(database, is_superuser) is False


def test_a_password_is_asked_of_the_role_that_has_one(postgres: Server, database: str) -> None:
    name = database.rpartition("/")[2]
    assert ask(postgres.url_with_password(name), "SELECT current_user::text") == "secretive"
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres.url_with_password(name, "wrong"))


def test_the_superuser_does_not_come_in_by_the_network(postgres: Server) -> None:
    with pytest.raises(psycopg.OperationalError, match=r"no pg_hba\.conf entry"):
        psycopg.connect(postgres.url("postgres", user="postgres"))


def test_a_database_is_copied_from_a_template(postgres: Server, database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 7 AS seen")
    name = database.rpartition("/")[2]
    copy = postgres.create_database(f"{name}_copy", template=name)
    assert ask(copy, "SELECT seen FROM mine") == 7
    postgres.drop_database(f"{name}_copy")


def test_an_immediate_restart_cuts_connections_and_keeps_what_was_committed(
    own_postgres: Server,
) -> None:
    url = own_postgres.create_database("kept")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 7 AS seen")
        own_postgres.restart_immediate()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    assert ask(url, "SELECT seen FROM mine") == 7


def test_a_stopped_server_comes_back_at_the_same_place(own_postgres: Server) -> None:
    url = own_postgres.create_database("kept")
    own_postgres.stop(signal.SIGINT)
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(url)
    own_postgres.start_again()
    assert ask(url, "SELECT 1") == 1


def test_a_shared_server_is_not_stopped(postgres: Server) -> None:
    with pytest.raises(AssertionError, match="own_postgres"):
        postgres.stop()


def test_a_standby_follows_and_takes_no_writes(own_postgres: Server) -> None:
    url = own_postgres.create_database("followed")
    standby = own_postgres.make_standby()
    assert ask(standby.url("followed"), "SELECT pg_is_in_recovery()") is True
    with (
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
        psycopg.connect(standby.url("followed")) as connection,
    ):
        connection.execute("CREATE TABLE mine (id int)")
    assert ask(url, "SELECT pg_is_in_recovery()") is False
    standby.close()


def test_every_version_on_this_machine_can_be_had(each_postgres: Server) -> None:
    assert each_postgres.version().split(".")[0] == str(each_postgres.installation.major)


def test_servers_do_not_run_as_root(postgres: Server) -> None:
    pid = (postgres.folder / "data" / "postmaster.pid").read_text().split()[0]
    assert Path(f"/proc/{pid}").stat().st_uid != 0
