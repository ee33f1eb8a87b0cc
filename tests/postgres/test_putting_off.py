"""Statements whose answer nobody needs travel with the next one, as a part of their transaction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from penstock.clock import SystemClock
from penstock.errors import StoreError
from penstock.store.database import to_json
from penstock.store.postgres import session as session_module
from penstock.store.postgres.database import PostgresDatabase
from tests.journeys.rig import until
from tests.postgres.crowd import ask
from tests.postgres.proxy import Proxy

LINES = "SELECT detail FROM penstock.event ORDER BY id"


@pytest.fixture
def db(database: str) -> Iterator[PostgresDatabase]:
    with closing(PostgresDatabase(database, SystemClock())) as made:
        yield made


def note(db: PostgresDatabase, now: float, detail: str) -> None:
    line = ("test.noted", None, None, None, None, "test", detail)
    db.later("add_events", now=now, events=to_json([line]), origin="")


def test_what_was_put_off_comes_before_what_is_asked_next(db: PostgresDatabase) -> None:
    about = dict.fromkeys(("run_id", "job_id", "source_id", "kind", "kinds"))
    with db.writing() as now:
        note(db, now, "one")
        note(db, now, "two")
        assert [line["detail"] for line in db.json("events", after_id=0, limit=10, **about)] == [
            "one",
            "two",
        ]


def test_what_was_put_off_is_committed_in_one_journey(database: str, proxy: Proxy) -> None:
    with closing(PostgresDatabase(proxy.through(database), SystemClock())) as db:
        with db.writing() as now:
            note(db, now, "one")
            note(db, now, "two")
            sent = proxy.statements
        assert proxy.statements == sent + 3

    assert ask(database, LINES) == [("one",), ("two",)]


def test_server_ends_a_transaction_that_stands_idle_behind_what_was_put_off(
    db: PostgresDatabase, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, timeout = session_module.BEGIN, r"(idle_in_transaction_session_timeout) = \d+"
    monkeypatch.setattr(session_module, "BEGIN", re.sub(timeout, r"\1 = 100", usual))

    def stand_idle() -> None:
        with db.writing() as now:
            note(db, now, "lost")
            [(pid,)] = db.run_sql("SELECT pg_backend_pid()")
            db.rows("source_ids")  # what was put off travels with it
            is_there = f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"
            until(lambda: ask(database, is_there) == [], "the server has ended the transaction")

    with pytest.raises(StoreError):
        stand_idle()
    assert ask(database, LINES) == []


def test_what_was_put_off_is_dropped_with_its_transaction(
    db: PostgresDatabase, database: str
) -> None:
    def fail() -> None:
        with db.writing() as now:
            note(db, now, "dropped")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with db.writing() as now:
        note(db, now, "kept")

    assert ask(database, LINES) == [("kept",)]


def test_what_was_put_off_and_fails_takes_its_transaction_with_it(
    db: PostgresDatabase, database: str
) -> None:
    def fail() -> None:
        with db.writing() as now:
            note(db, now, "before")
            db.later("count_stages", deltas='[["no number"]]')
            note(db, now, "after")

    with pytest.raises(StoreError, match="invalid input syntax"):
        fail()
    with db.writing() as now:
        note(db, now, "kept")

    assert ask(database, LINES) == [("kept",)]


def test_nothing_is_put_off_where_a_pooler_stands_between(
    pooled_database: str, database: str
) -> None:
    with (
        closing(PostgresDatabase(pooled_database, SystemClock())) as db,
        db.writing() as now,
    ):
        note(db, now, "at once")
        assert db._put_off == []

    assert ask(database, LINES) == [("at once",)]
