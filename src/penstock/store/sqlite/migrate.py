"""The schema of a file: made and brought up to date in place, each migration in one transaction.

A migration locks the whole file for as long as it lasts; whoever else has it open waits, and goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from penstock.clock import Clock
from penstock.store.schema import (
    Applied,
    Migration,
    OldWorker,
    Plan,
    State,
    migrated_event,
    migrations,
    pending,
    refuse_in_the_way,
    refuse_newer,
    refuse_unasked,
)
from penstock.version import __version__

PACKAGE = "penstock.store.sqlite"
# "PSTK" in SQLite's header: a file that is a database but not ours is refused before it is touched.
APPLICATION_ID = 0x5053544B
# From this schema on, a worker's row says which schema its code knows.
WORKERS_TELL = 2

MIGRATION = """
CREATE TABLE IF NOT EXISTS migration (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  contracts INTEGER NOT NULL,
  applied_at REAL NOT NULL
) STRICT
"""


def newest() -> int:
    """The newest schema that this code knows."""
    return migrations(PACKAGE)[-1].number


def ensure_schema(connection: apsw.Connection, place: str, clock: Clock) -> None:
    """Make a schema where there is none, and expand an old one; anything else is refused."""
    state = state_of(connection)
    refuse_newer(place, state, newest())
    refuse_unasked(place, pending(migrations(PACKAGE), state), state)
    list(migrate(connection, clock, f"penstock {__version__}", ""))


def plan(connection: apsw.Connection, clock: Clock) -> Plan:
    state = state_of(connection)
    old = _old_workers(connection, clock, state, newest())
    return Plan(state, pending(migrations(PACKAGE), state), old)


def migrate(
    connection: apsw.Connection, clock: Clock, actor: str, reason: str
) -> Iterator[Applied]:
    """Apply what is missing, also what older code can't work with."""
    if not state_of(connection).number:
        yield from make(connection, clock)
    for each in pending(migrations(PACKAGE), state_of(connection)):
        yield from _apply(connection, each, clock, actor, reason)


# Each of these does nothing where somebody else was faster, and a crash in the middle leaves nothing of it.


def make(connection: apsw.Connection, clock: Clock, upto: int | None = None) -> list[Applied]:
    """The whole schema at once: nobody may take a half-made one for an old one."""
    began = clock.monotonic()
    with _immediate(connection):
        if state_of(connection).number:
            return []
        known = [each for each in migrations(PACKAGE) if upto is None or each.number <= upto]
        for each in known:
            connection.execute(each.text)
            _write_down(connection, each, clock.now())
    return [Applied(each, clock.monotonic() - began) for each in known]


def _apply(
    connection: apsw.Connection, migration: Migration, clock: Clock, actor: str, reason: str
) -> list[Applied]:
    began = clock.monotonic()
    with _immediate(connection):
        state = state_of(connection)
        if state.number >= migration.number:
            return []
        old = _old_workers(connection, clock, state, migration.contracts)
        refuse_in_the_way(migration, old)
        connection.execute(migration.text)
        _write_down(connection, migration, clock.now())
        _journal(connection, migration, clock.now(), actor, reason)
    return [Applied(migration, clock.monotonic() - began)]


def _journal(
    connection: apsw.Connection, migration: Migration, now: float, actor: str, reason: str
) -> None:
    line = migrated_event(migration, actor, reason)
    values = ", ".join("?" * len(line))
    # Only names of columns that stand in our own code.
    insert = f"INSERT INTO event (at, {', '.join(line)}) VALUES (?, {values})"  # noqa: S608
    connection.execute(insert, (now, *line.values()))


def state_of(connection: apsw.Connection) -> State:
    """A schema that is not written down in our table is one that nobody may work on but its maker."""
    number = int(connection.pragma("user_version"))
    if not _has(connection, "migration"):
        return State(number, number)
    found: list[Any] = connection.execute("SELECT number, contracts FROM migration").fetchall()
    rows = dict(found)
    return State(number, max(rows.values()) if number in rows else number)


def _write_down(connection: apsw.Connection, migration: Migration, now: float) -> None:
    connection.execute(MIGRATION)
    connection.execute(
        "INSERT INTO migration (number, name, contracts, applied_at) VALUES (?, ?, ?, ?)",
        (migration.number, migration.name, migration.contracts, now),
    )
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", migration.number)


def _old_workers(
    connection: apsw.Connection, clock: Clock, state: State, knowing: int
) -> list[OldWorker]:
    """Who holds a lease and knows less than this schema."""
    if state.number < WORKERS_TELL:
        return []
    found = connection.execute(
        "SELECT id, host, version, schema FROM worker"
        " WHERE lease_expires_at > ? AND schema < ? ORDER BY id",
        (clock.now(), knowing),
    )
    return [OldWorker(*row) for row in found]


def _has(connection: apsw.Connection, table: str) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,))
    return found.fetchone() is not None


@contextmanager
def _immediate(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
