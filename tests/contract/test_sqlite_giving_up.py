"""Who leaves does not wait for another process that keeps the file locked."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw

from penstock.clock import SystemClock
from penstock.errors import StoreError
from penstock.store.sqlite.database import BUSY_MS
from penstock.store.sqlite.store import SqliteStore


def test_a_call_that_waits_for_a_locked_file_ends_when_it_is_given_up(tmp_path: Path) -> None:
    file = tmp_path / "penstock.db"
    store = SqliteStore(file, SystemClock())
    other = apsw.Connection(str(file))
    other.execute("BEGIN IMMEDIATE")
    met: list[str] = []

    def call() -> None:
        for _ in range(2):  # the one under way, and the next
            try:
                store.workers.beat("w")
            except StoreError as error:
                met.append(error.message)

    caller = threading.Thread(target=call)
    caller.start()
    store.give_up()
    caller.join(BUSY_MS / 1000 * 0.8)
    assert len(met) == 2
    assert "locked by another process" in met[0]
    other.execute("ROLLBACK")
    store.close()
    other.close()


def test_a_lock_that_is_let_go_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "penstock.db"
    store = SqliteStore(file, SystemClock())
    store.workers.register("w", "host", 1, "1")
    other = apsw.Connection(str(file))
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.2, other.execute, ["ROLLBACK"])
    timer.start()
    assert store.workers.beat("w")
    timer.join()
    store.close()
    other.close()
