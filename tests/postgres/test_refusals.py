"""Databases that can't be used are refused in one line that says what to do, and never says the password."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from penstock.clock import SystemClock
from penstock.errors import StoreError, StoreUnreachable
from penstock.settings.address import SCHEMA
from penstock.store.postgres import connection
from penstock.store.postgres import session as session_module
from penstock.store.postgres.connection import OLDEST, Connection
from penstock.store.postgres.grants import GRANTS, grants
from penstock.store.postgres.store import PostgresStore
from penstock.store.upkeep import Keep
from tests.contract.scenes import POSTGRES, World
from tests.contract.test_copying import live_a_little
from tests.journeys import rig as rigs
from tests.journeys.rig import Rig, counting_site, source_of
from tests.postgres.crowd import ask
from tests.postgres.fixtures import a_name
from tests.postgres.ports import free_port
from tests.postgres.server import PASSWORD, Server
from tests.postgres.workspace import until

CLOCK = SystemClock()
WRONG = "open sesame/and@more"
SPELLINGS = [
    spell(word) for word in (PASSWORD, WRONG) for spell in (str, quote, lambda w: quote(w, ""))
]
NOBODYS = {"shop": {"pipeline": "steps:pages", "params": {"sitemap": "http://127.0.0.1:1/x"}}}


def assert_silent_about_passwords(*texts: str) -> None:
    for text in texts:
        assert [spelling for spelling in SPELLINGS if spelling in text] == []


# Servers that are not fit.


def test_standby_is_refused(own_postgres: Server) -> None:
    url = own_postgres.create_database("here")
    PostgresStore(url, CLOCK).close()
    standby = own_postgres.make_standby()
    try:
        with pytest.raises(StoreError, match="is a standby") as refused:
            PostgresStore(standby.url("here"), CLOCK)
        assert "primary" in refused.value.hint
        assert not isinstance(refused.value, StoreUnreachable), "waiting does not help"
    finally:
        standby.close()


def test_server_that_confirms_what_it_may_still_lose_is_refused(
    database: str, postgres: Server
) -> None:
    name = database.rpartition("/")[2]
    ask(postgres.admin_url(), f"ALTER DATABASE {name} SET synchronous_commit = off")

    with pytest.raises(StoreError, match="synchronous_commit off"):
        PostgresStore(database, CLOCK)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_database_that_can_not_hold_every_text_is_refused(postgres: Server, encoding: str) -> None:
    name = a_name()
    ask(
        postgres.admin_url(),
        f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE_PROVIDER libc LOCALE 'C'"
        " OWNER penstock",
    )
    try:
        with pytest.raises(StoreError, match=f"has the encoding {encoding}") as refused:
            PostgresStore(postgres.url(name), CLOCK)
        assert "ENCODING 'UTF8' TEMPLATE template0" in refused.value.hint
    finally:
        postgres.drop_database(name)


# Roles that may do little.


@pytest.fixture
def worker_role(postgres: Server, database: str) -> Iterator[str]:
    """A role that owns nothing, and may only come in."""
    name = f"{a_name()}_worker"
    ask(postgres.admin_url(), f"CREATE ROLE {name} LOGIN")
    ask(postgres.admin_url(), f"GRANT {name} TO penstock")
    yield name
    ask(postgres.admin_url(database.rpartition("/")[2]), f"DROP OWNED BY {name}")
    ask(postgres.admin_url(), f"DROP ROLE {name}")


def as_role(url: str, role: str) -> str:
    """The session takes the role's rights, whoever has logged in."""
    return f"{url}?options=-c%20role%3D{role}"


def test_role_with_the_printed_grants_can_do_all_of_a_workers_work(
    database: str, worker_role: str
) -> None:
    PostgresStore(database, CLOCK).close()
    for statement in grants(SCHEMA, worker_role):
        ask(database, statement)

    world = World(POSTGRES, as_role(database, worker_role))
    live_a_little(world)
    world.store.upkeep.prune(Keep(1.0, 1.0, 1.0, 1.0))
    assert world.store.upkeep.check() == []
    world.close()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(as_role(database, worker_role), "DROP TABLE penstock.record")


@pytest.mark.parametrize(
    ("left_out", "lacks"),
    [("SEQUENCES", "the sequence"), ("TABLES", "the table"), ("SCHEMA", "the schema")],
)
def test_role_that_lacks_a_right_is_refused_at_the_door_and_told_the_grant(
    database: str, worker_role: str, left_out: str, lacks: str
) -> None:
    PostgresStore(database, CLOCK).close()
    for kind, text in GRANTS.items():
        if kind != left_out:
            ask(database, text.format(schema=SCHEMA, role=worker_role))

    with pytest.raises(StoreError) as refused:
        PostgresStore(as_role(database, worker_role), CLOCK)

    assert lacks in refused.value.message
    assert (
        GRANTS[left_out].format(schema='"penstock"', role=f'"{worker_role}"') in refused.value.hint
    )


def test_role_that_only_works_is_told_who_migrates(database: str, worker_role: str) -> None:
    PostgresStore(database, CLOCK).close()
    for statement in grants(SCHEMA, worker_role):
        ask(database, statement)
    ask(
        database,
        "DELETE FROM penstock.migration WHERE number = (SELECT max(number) FROM penstock.migration)",
    )

    with pytest.raises(StoreError, match="does not own its tables") as refused:
        PostgresStore(as_role(database, worker_role), CLOCK)

    assert "penstock db migrate" in refused.value.hint


def test_server_that_is_too_old_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Old(Connection):
        def execute(self, query: Any, *values: Any, **options: Any) -> psycopg.Cursor[Any]:
            older = query.replace("current_setting('server_version_num')", "'130009'")
            return super().execute(older, *values, **options)

    monkeypatch.setattr(connection, "Connection", Old)
    with pytest.raises(StoreError, match=f"is Postgres 13; Penstock needs {OLDEST}"):
        PostgresStore(database, CLOCK)


def test_who_becomes_a_standby_under_a_store_is_told_apart_from_one_that_is_gone(
    own_postgres: Server,
) -> None:
    url = own_postgres.create_database("here")
    with closing(PostgresStore(url, CLOCK)) as store:
        store.sources.ensure(["shop"])
        (own_postgres.folder / "data" / "standby.signal").touch()
        own_postgres.restart_immediate()
        with pytest.raises(StoreUnreachable):
            store.overview()  # on the connection that was cut
        with pytest.raises(StoreError, match="is a standby"):
            store.sources.ensure(["other"])
        (own_postgres.folder / "data" / "standby.signal").unlink()
        own_postgres.restart_immediate()
        assert store.sources.ensure(["other"])


# By way of the command line.


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    made: list[Rig] = []

    def run(url: str, *words: str) -> Any:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Rig(folder, NOBODYS, store=url))
        return made[-1].penstock(*words)

    yield run
    for rig in made:
        rig.close()


def assert_refused(done: Any, *words: str) -> None:
    assert done.returncode == 5, done.stderr
    assert [word for word in words if word not in done.stderr] == []
    assert "Traceback" not in done.stdout + done.stderr
    assert_silent_about_passwords(done.stdout, done.stderr)
    assert len(done.stderr.splitlines()) <= 3


@pytest.mark.parametrize("command", ["status", "up", "worker", "scheduler"])
def test_wrong_password_is_refused(
    commands: Callable[..., Any], postgres: Server, database: str, command: str
) -> None:
    name = database.rpartition("/")[2]

    done = commands(postgres.url_with_password(name, WRONG), command)

    assert_refused(done, "refused the login", "check user and password")


def test_database_that_does_not_exist_is_refused(
    commands: Callable[..., Any], postgres: Server
) -> None:
    done = commands(postgres.url_with_password("nowhere"), "status")

    assert_refused(done, 'database "nowhere" does not exist', "create it")


def test_who_may_not_make_a_schema_is_told_so(
    commands: Callable[..., Any], postgres: Server, database: str
) -> None:
    name = database.rpartition("/")[2]
    ask(postgres.admin_url(), f"ALTER DATABASE {name} OWNER TO postgres")

    done = commands(postgres.url_with_password(name), "status")

    assert_refused(done, "not allowed", "grant it")


@pytest.mark.parametrize("command", [("status",), ("run", "shop"), ("db", "check")], ids=" ".join)
def test_port_where_nobody_listens_is_unreachable(
    commands: Callable[..., Any], command: tuple[str, ...]
) -> None:
    secret = quote(WRONG, safe="")

    done = commands(f"postgresql://who:{secret}@127.0.0.1:{free_port()}/here", *command)

    assert_refused(done, "can't reach the database", "check that the server is running")


def test_address_that_can_not_be_read_is_not_repeated(commands: Callable[..., Any]) -> None:
    done = commands(f"postgresql://who:{quote(WRONG, safe='')}@[::1/here", "status")

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert_silent_about_passwords(done.stdout, done.stderr)


# The password.


def command_lines(rig: Rig) -> list[str]:
    """Of every process that works in the rig's folder, as anyone on the host can read them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if Path(process, "cwd").readlink() == rig.folder:
                found.append(Path(process, "cmdline").read_text())
        except OSError:
            continue
    return found


def test_password_is_nowhere_to_be_seen(tmp_path: Path, own_postgres: Server) -> None:
    own_postgres.create_database("secret")
    url = own_postgres.url_with_password("secret")
    with counting_site() as site, Rig(tmp_path, {"shop": source_of(site, 20)}, store=url) as rig:
        [run_id] = rig.enqueue("shop")
        up = rig.start("up")
        rigs.until(lambda: rig.run(run_id).is_ended, "the run has ended")
        lines = command_lines(rig)
        assert len(lines) >= 2, "the supervisor's and the worker's"
        own_postgres.restart_immediate()
        rig.store.reopen()
        [again] = rig.enqueue("shop")
        rigs.until(lambda: rig.run(again).is_ended, "the next run has ended")
        shown = [
            rig.penstock(*words)
            for words in (
                ["status"], ["status", "--json"], ["workers"], ["events"], ["runs"], ["db", "check"],
            )
        ]  # fmt: skip
        up.terminate()
        assert up.wait(timeout=120) == 0
        assert all(done.returncode == 0 for done in shown)
        assert_silent_about_passwords(
            *lines,
            *(done.stdout + done.stderr for done in shown),
            rig.output(up),
            json.dumps(everything_in(own_postgres.admin_url("secret"))),
        )
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        leaking = [
            path.name for path in files if any(s.encode() in path.read_bytes() for s in SPELLINGS)
        ]
        assert leaking == ["penstock.yaml"], "where the operator has written it"


def everything_in(url: str) -> list[str]:
    tables = ask(
        url,
        "SELECT relname FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace"
        " WHERE nspname = 'penstock' AND relkind = 'r'",
    )
    return [
        row
        for (table,) in tables
        for (row,) in ask(url, f"SELECT t::text FROM penstock.{table} AS t")
    ]


# Servers that are only busy.


def test_lock_that_is_held_for_long_is_waited_for_and_not_given_up(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that meets it at its start is started again; another error would end its supervisor."""
    begin = session_module.BEGIN.replace("lock_timeout = 5000", "lock_timeout = 100")
    monkeypatch.setattr(session_module, "BEGIN", begin)
    with closing(PostgresStore(database, CLOCK)) as store, psycopg.connect(database) as holding:
        holding.execute("LOCK TABLE penstock.source IN EXCLUSIVE MODE")
        with pytest.raises(StoreUnreachable, match="for a lock"):
            store.sources.ensure(["shop"])
        holding.rollback()
        assert store.sources.ensure(["shop"])


def test_statement_that_a_person_cancels_is_tried_again(database: str) -> None:
    with closing(PostgresStore(database, CLOCK)) as store, psycopg.connect(database) as holding:
        holding.execute("LOCK TABLE penstock.source IN EXCLUSIVE MODE")
        cancelled = threading.Thread(
            target=lambda: until("somebody waits", lambda: cancel(database))
        )
        cancelled.start()
        with pytest.raises(StoreUnreachable):
            store.sources.ensure(["shop"])
        cancelled.join()
        holding.rollback()
        assert store.sources.ensure(["shop"])


def cancel(url: str) -> bool:
    waiting = "datname = current_database() AND wait_event_type = 'Lock'"
    return bool(ask(url, f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE {waiting}"))
