"""The proxy between a client and Postgres: each fault is what it says, seen from both sides."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import Connection

from tests.postgres.proxy import Fault, Proxy
from tests.postgres.server import Server
from tests.postgres.workspace import until

Row = tuple[object, ...]


@pytest.fixture
def connection(proxy: Proxy, database: str) -> Iterator[Connection[Row]]:
    with psycopg.connect(database) as direct:
        direct.execute("CREATE TABLE seen (number int)")
    with psycopg.connect(proxy.through(database)) as made:
        yield made


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    """Runs what will hang; the proxy's end lets it go."""
    pool = ThreadPoolExecutor(2)
    yield pool
    pool.shutdown(wait=False)


def numbers(database: str) -> list[object]:
    with psycopg.connect(database) as direct:
        return [number for [number] in direct.execute("SELECT number FROM seen ORDER BY 1")]


def backends(postgres: Server, database: str) -> int:
    name = database.rpartition("/")[2]
    found = postgres.admin("SELECT datname FROM pg_stat_activity")
    return sum(row[0] == name for row in found)


def insert(connection: Connection[Row], number: int) -> None:
    connection.execute("INSERT INTO seen VALUES (%s)", [number])


def test_everything_passes(connection: Connection[Row], database: str) -> None:
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany("INSERT INTO seen VALUES (%s)", [[number] for number in range(1000)])
    long = connection.execute("SELECT repeat('x', 3000000)").fetchone()
    assert long is not None
    assert len(str(long[0])) == 3_000_000
    assert len(numbers(database)) == 1000


def test_a_query_is_cancelled_through_it(
    connection: Connection[Row], proxy: Proxy, aside: ThreadPoolExecutor
) -> None:
    connection.execute("SELECT pg_advisory_lock(1)")
    with psycopg.connect(connection.info.dsn) as other:
        waiting = aside.submit(other.execute, "SELECT pg_advisory_lock(1)")
        until("the lock is waited for", lambda: proxy.statements >= 4)
        while not waiting.done():
            other.cancel_safe()
        assert isinstance(waiting.exception(), psycopg.errors.QueryCanceled)


@pytest.mark.parametrize("in_pipeline", [False, True], ids=["plain", "pipeline"])
def test_a_commit_whose_answer_is_lost_did_happen(
    connection: Connection[Row], proxy: Proxy, database: str, in_pipeline: bool
) -> None:
    insert(connection, 1)
    lost = proxy.fail(Fault.CUT_AFTER, at="COMMIT")
    with pytest.raises(psycopg.OperationalError):
        commit(connection, in_pipeline)
    lost.wait()
    assert numbers(database) == [1]


@pytest.mark.parametrize("in_pipeline", [False, True], ids=["plain", "pipeline"])
def test_a_commit_that_is_cut_off_before_did_not(
    connection: Connection[Row], proxy: Proxy, database: str, in_pipeline: bool
) -> None:
    insert(connection, 1)
    lost = proxy.fail(Fault.CUT_BEFORE, at="COMMIT")
    with pytest.raises(psycopg.OperationalError):
        commit(connection, in_pipeline)
    lost.wait()
    assert numbers(database) == []


def commit(connection: Connection[Row], in_pipeline: bool) -> None:
    if in_pipeline:
        with connection.pipeline():
            connection.commit()
    else:
        connection.commit()


def test_the_nth_commit_is_the_one_that_fails(
    connection: Connection[Row], proxy: Proxy, database: str
) -> None:
    lost = proxy.fail(Fault.CUT_BEFORE, at=r"\bcommit\b", nth=3)
    for number in (1, 2):
        insert(connection, number)
        connection.commit()
    insert(connection, 3)
    with pytest.raises(psycopg.OperationalError):
        connection.commit()
    assert (lost.seen, lost.happened) == (3, 1)
    assert numbers(database) == [1, 2]


def test_a_statement_that_was_prepared_long_before_is_known_by_its_text(
    connection: Connection[Row], proxy: Proxy
) -> None:
    connection.prepare_threshold = 0
    insert(connection, 1)
    insert(connection, 2)
    proxy.fail(Fault.CUT_BEFORE, at="INSERT INTO seen")
    with pytest.raises(psycopg.OperationalError):
        insert(connection, 3)


def test_the_same_seed_fails_the_same_commits(proxy: Proxy, database: str) -> None:
    def failed(seed: int) -> list[int]:
        proxy.heal()
        proxy.fail_at_random(Fault.CUT_AFTER, 0.5, seed, at="COMMIT")
        return [turn for turn in range(12) if not commits(proxy.through(database))]

    assert failed(1) == failed(1)
    assert failed(1) != failed(2)
    assert 0 < len(failed(1)) < 12


def commits(url: str) -> bool:
    try:
        with psycopg.connect(url) as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def test_a_statement_that_hangs_leaves_the_server_with_an_open_transaction(
    connection: Connection[Row],
    proxy: Proxy,
    postgres: Server,
    database: str,
    aside: ThreadPoolExecutor,
) -> None:
    insert(connection, 1)
    hung = proxy.fail(Fault.HANG_BEFORE, nth=2)
    insert(connection, 2)
    waiting = aside.submit(insert, connection, 3)
    hung.wait()
    assert backends(postgres, database) == 1
    assert not waiting.done()
    proxy.cut()
    assert isinstance(waiting.exception(5), psycopg.OperationalError)
    until("the server has noticed", lambda: backends(postgres, database) == 0)
    assert numbers(database) == []


def test_a_commit_that_hangs_after_it_was_run_did_happen(
    connection: Connection[Row], proxy: Proxy, database: str, aside: ThreadPoolExecutor
) -> None:
    insert(connection, 1)
    hung = proxy.fail(Fault.HANG_AFTER, at="COMMIT")
    waiting = aside.submit(connection.commit)
    hung.wait()
    assert numbers(database) == [1]
    assert not waiting.done()
    proxy.cut()
    assert isinstance(waiting.exception(5), psycopg.OperationalError)


def test_in_a_black_hole_nobody_hears_of_anybody(
    connection: Connection[Row],
    proxy: Proxy,
    postgres: Server,
    database: str,
    aside: ThreadPoolExecutor,
) -> None:
    insert(connection, 1)
    proxy.black_hole()
    waiting = aside.submit(connection.commit)
    with pytest.raises(psycopg.errors.ConnectionTimeout):
        psycopg.connect(proxy.through(database), connect_timeout=2)
    assert not waiting.done()
    assert backends(postgres, database) == 1

    proxy.heal()
    assert commits(proxy.through(database))
    assert not waiting.done()
    proxy.cut()
    assert isinstance(waiting.exception(5), psycopg.OperationalError)


def test_a_client_that_leaves_a_black_hole_leaves_its_session_behind(
    proxy: Proxy, postgres: Server, database: str
) -> None:
    connection = psycopg.connect(proxy.through(database))
    proxy.black_hole(new=False)
    connection.close()
    assert commits(proxy.through(database))
    assert backends(postgres, database) >= 1
    proxy.cut()
    until("the server has noticed", lambda: backends(postgres, database) == 0)


def test_what_was_frozen_arrives_when_it_thaws(
    connection: Connection[Row], proxy: Proxy, database: str, aside: ThreadPoolExecutor
) -> None:
    insert(connection, 1)
    proxy.freeze()
    waiting = aside.submit(connection.commit)
    assert numbers(database) == []
    assert not waiting.done()
    proxy.thaw()
    waiting.result(5)
    assert numbers(database) == [1]


def test_delays_add_up_to_a_round_trip(connection: Connection[Row], proxy: Proxy) -> None:
    proxy.delay(to_server_s=0.05, to_client_s=0.1)
    begun = time.monotonic()
    connection.execute("SELECT 1")
    # psycopg begins a transaction first: two round trips.
    assert time.monotonic() - begun >= 0.3


def test_a_closed_port_refuses_and_those_inside_stay(
    connection: Connection[Row], proxy: Proxy, database: str
) -> None:
    proxy.refuse()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(proxy.through(database))
    connection.execute("SELECT 1")
    proxy.accept()
    assert commits(proxy.through(database))


def test_notifications_are_dropped_and_nothing_else(
    connection: Connection[Row], proxy: Proxy, database: str
) -> None:
    connection.autocommit = True
    connection.execute("LISTEN news")
    proxy.drop_notifications()
    with psycopg.connect(database, autocommit=True) as other:
        other.execute("NOTIFY news")
        until("one was dropped", lambda: proxy.notifications_dropped == 1)
        assert list(connection.notifies(timeout=0)) == []
        proxy.drop_notifications(False)
        other.execute("NOTIFY news")
    assert len(list(connection.notifies(timeout=5, stop_after=1))) == 1


def test_a_server_that_is_down_is_a_connection_that_ends(
    own_postgres: Server,
) -> None:
    url = own_postgres.create_database("there")
    with Proxy(own_postgres.port) as proxy:
        own_postgres.stop()
        assert not commits(proxy.through(url))
        own_postgres.start_again()
        assert commits(proxy.through(url))


def test_nothing_is_left_when_it_is_closed(postgres: Server, database: str) -> None:
    threads = threading.active_count()
    with Proxy(postgres.port) as proxy:
        left = psycopg.connect(proxy.through(database))
        plain = socket.create_connection(("127.0.0.1", proxy.port))
    assert threading.active_count() == threads
    assert select.select([plain], [], [], 5)[0]
    plain.close()
    left.close()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(proxy.through(database))
