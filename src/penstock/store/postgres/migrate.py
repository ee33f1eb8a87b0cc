"""The schema of a Postgres database: made and brought up to date beside those who work on it.

One process migrates at a time, by an advisory lock that ends with its transaction. Whoever waits for
a table's lock makes everybody who comes later wait behind it, so while somebody works, a migration
gives up soon, lets the others through and tries again; and what it has locked it holds but briefly.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from psycopg import errors as e
from psycopg import sql
from psycopg.pq import TransactionStatus

from penstock.errors import Remedy, StoreError
from penstock.settings.address import SCHEMA
from penstock.store.postgres.connection import PATIENCE_S, STATEMENT_S, Connection
from penstock.store.postgres.schema_names import in_schema, lock_of
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

PACKAGE = "penstock.store.postgres"
# Whoever migrates holds this.
LOCK = lock_of(SCHEMA)
# While somebody works: how long to wait for a lock, and how long waiting and holding may last together.
WAIT_MS = 100
HOLD_MS = 150
# For a migrating process that is stopped when it has just looked who works.
IDLE_MS = 1000
TRY_FOR_S = 60.0
MAX_PAUSE_S = 1.0

IN_THE_WAY = (e.LockNotAvailable, e.QueryCanceled, e.DeadlockDetected)
MIGRATION = """
CREATE TABLE IF NOT EXISTS penstock.migration (
  number integer PRIMARY KEY,
  name text NOT NULL,
  contracts integer NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  took_s double precision NOT NULL
)
"""
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
# The time of a statement is when its message has come in; a message may hold many.
WRITE_DOWN = """
INSERT INTO penstock.migration (number, name, contracts, took_s)
VALUES ({}, {}, {}, extract(epoch FROM clock_timestamp() - statement_timestamp()))
"""
TOOK = "SELECT extract(epoch FROM clock_timestamp() - statement_timestamp())"
JOURNAL = "INSERT INTO penstock.event (at, {names}) VALUES ({at}, {values})"
WORKERS = """
SELECT id, host, version, schema FROM penstock.worker
WHERE lease_expires_at > %s AND schema < %s ORDER BY id
"""
# What is being built at this moment is not left over.
LEFTOVERS = """
SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE NOT i.indisvalid AND c.relnamespace = to_regnamespace(%s)
  AND c.oid NOT IN (SELECT index_relid FROM pg_stat_progress_create_index)
ORDER BY c.relname
"""
OWNS = """
SELECT coalesce(bool_and(pg_has_role(relowner, 'USAGE')), true) FROM pg_class
WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'
"""
EVERYBODY = 2**31 - 1
INTRANS, INERROR = TransactionStatus.INTRANS, TransactionStatus.INERROR
CONCURRENTLY = re.compile(r"\bCONCURRENTLY\s")

Act = Callable[[], list[Applied]]
# An event of the journal: the column that tells of it, its kind, its actor, and what it says.
# An event by the columns of the journal.
Line = Mapping[str, str]


class _Busy(Exception):
    """Somebody else is migrating."""


def newest() -> int:
    """The newest schema that this code knows."""
    return migrations(PACKAGE)[-1].number


class Migrating:
    """The schema behind one connection. `connect` makes another one, to hold a lock meanwhile."""

    def __init__(
        self,
        connection: Connection,
        connect: Callable[[], Connection],
        now: Callable[[], float],
        place: str,
        is_pooled: bool,
        schema: str = SCHEMA,
    ) -> None:
        self._connection = connection
        self._connect = connect
        self._now = now
        self._place = place
        self._is_pooled = is_pooled
        self._schema = schema
        self._lock = lock_of(schema)

    def ensure(self) -> None:
        """Make a schema where there is none, and expand an old one; anything else is refused."""
        state = self.state()
        refuse_newer(self._place, state, newest())
        missing = pending(migrations(PACKAGE), state)
        refuse_unasked(self._place, missing, state)
        if missing:
            self._refuse_stranger(missing, state)
            list(self.migrate(f"penstock {__version__}", ""))

    def _refuse_stranger(self, missing: Sequence[Migration], state: State) -> None:
        """A role that only works may not change tables: who owns them has to."""
        if state.number and not self._value(OWNS, self._schema):
            raise StoreError(
                f"{self._place} has schema {state.number}, this Penstock needs {missing[-1].number}, and the "
                "user in `store:` does not own its tables",
                "run `penstock db migrate` once as their owner",
            )

    def plan(self) -> Plan:
        state = self.state()
        missing = pending(migrations(PACKAGE), state)
        return Plan(state, missing, self._workers(state, newest()), self.leftovers())

    def migrate(self, actor: str, reason: str) -> Iterator[Applied]:
        """Apply what is missing, also what older code can't work with."""
        if not self.state().number:
            yield from self._patiently("schema", self._make)
        for each in pending(migrations(PACKAGE), self.state()):
            yield from self._apply(each, actor, reason)

    def clear(self) -> list[str]:
        """Drop what was left half made; answers with its names."""
        found = self.leftovers()
        if found:
            self._patiently("leftovers", self._alone(self._drop_leftovers))
        return found

    def state(self) -> State:
        if not self._value(self._ours("SELECT to_regclass('penstock.migration') IS NOT NULL")):
            return State()
        [(number, contract)] = self._connection.execute(
            self._ours(
                "SELECT coalesce(max(number), 0), coalesce(max(contracts), 0) FROM penstock.migration"
            ).encode()
        ).fetchall()
        return State(number, contract)

    def leftovers(self) -> list[str]:
        """Indexes whose making was cut short: they are kept up to date, and never used."""
        return [name for (name,) in self._connection.execute(LEFTOVERS, (self._schema,))]

    # Each of these does nothing where somebody else was faster.

    def _make(self) -> list[Applied]:
        """The whole schema at once: nobody may take a half-made one for an old one."""
        with self._locked(self._connection), self._endless_patience():
            if self.state().number:
                return []
            if not self._value("SELECT to_regnamespace(%s) IS NOT NULL", self._schema):
                name = sql.Identifier(self._schema)
                self._connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
            self._connection.execute(self._ours(MIGRATION).encode())
            known = migrations(PACKAGE)
            # There is nobody yet to hold up.
            statements = [
                CONCURRENTLY.sub("", text) for each in known for text in each.statements()
            ]
            took_s = self._at_once(statements, known, [])
            return [Applied(each, took_s) for each in known]

    def _apply(self, migration: Migration, actor: str, reason: str) -> list[Applied]:
        line = migrated_event(migration, actor, reason)
        if migration.is_outside:
            act = self._alone(lambda: self._outside(migration, line))
            return self._patiently(migration.name, act)
        return self._patiently(migration.name, lambda: self._inside(migration, line))

    def _inside(self, migration: Migration, line: Line) -> list[Applied]:
        with self._locked(self._connection):
            state = self.state()
            if state.number >= migration.number:
                return []
            with self._limits(state):
                self._refuse_old_workers(migration, state)
                took_s = self._at_once(migration.statements(), [migration], [line])
                return [Applied(migration, took_s)]

    def _outside(self, migration: Migration, line: Line) -> list[Applied]:
        """Statement by statement, each of which can be repeated: what was cut short is begun again."""
        if self.state().number >= migration.number:
            return []
        self._drop_leftovers()
        for statement in migration.statements():
            self._connection.execute(self._ours(statement).encode())
        self._connection.execute(BEGIN)
        return [Applied(migration, self._at_once([], [migration], [line]))]

    def _at_once(
        self,
        statements: Sequence[str],
        applied: Sequence[Migration],
        lines: Sequence[Line],
    ) -> float:
        """In one message, the commit and all: nobody waits because this side is slow to go on.

        Answers how long it took the server. One limit holds for all statements together.
        """
        body = sql.SQL(" ").join(
            sql.SQL("EXECUTE {};").format(self._ours(text)) for text in statements
        )
        block = sql.SQL("BEGIN {} END").format(body).as_string(self._connection)
        written = [(each.number, each.name, each.contracts) for each in applied]
        told = [
            self._composed(JOURNAL).format(
                names=sql.SQL(", ").join(map(sql.Identifier, line)),
                at=sql.Literal(self._now()),
                values=sql.SQL(", ").join(map(sql.Literal, line.values())),
            )
            for line in lines
        ]
        cursor = self._connection.execute(
            sql.SQL("; ").join(
                [
                    sql.SQL("DO {}").format(block),
                    *told,
                    *(self._composed(WRITE_DOWN).format(*map(sql.Literal, row)) for row in written),
                    sql.SQL(TOOK),
                    sql.SQL("COMMIT"),
                ]
            ),
            prepare=False,
        )
        while cursor.description is None and cursor.nextset():
            pass
        [(took_s,)] = cursor.fetchall()
        return float(took_s)

    def _drop_leftovers(self) -> list[Applied]:
        for name in self.leftovers():
            index = sql.Identifier(self._schema, name)
            self._connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(index))
        return []

    # Those who work meanwhile.

    def _workers(self, state: State, knowing: int) -> list[OldWorker]:
        """Who holds a lease and knows less than this schema."""
        if not state.number:
            return []
        about = (self._now(), knowing)
        return [
            OldWorker(*row) for row in self._connection.execute(self._ours(WORKERS).encode(), about)
        ]

    def _refuse_old_workers(self, migration: Migration, state: State) -> None:
        if migration.contracts:
            # Nobody registers between the look and the deed.
            lock = self._ours("LOCK TABLE penstock.worker IN SHARE ROW EXCLUSIVE MODE")
            self._connection.execute(lock.encode())
            refuse_in_the_way(migration, self._workers(state, migration.contracts))

    @contextmanager
    def _limits(self, state: State) -> Iterator[None]:
        """Brief while somebody works, and without end if nobody does."""
        if self._workers(state, EVERYBODY):
            self._set("lock_timeout", WAIT_MS)
            self._set("statement_timeout", HOLD_MS)
            self._set("idle_in_transaction_session_timeout", IDLE_MS)
            yield
            return
        self._set("lock_timeout", round(STATEMENT_S * 1000))
        self._set("statement_timeout", 0)
        with self._endless_patience():
            yield

    def _alone(self, act: Act) -> Act:
        """The act, while a connection of its own holds the lock.

        Not by the session that acts: a pooler may give each statement another one. A transaction that
        only holds this lock keeps no snapshot, so an index that is being built does not wait for it.
        """

        def act_alone() -> list[Applied]:
            with self._connect() as guard, self._locked(guard), self._unlimited():
                guard.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                return act()

        return act_alone

    @contextmanager
    def _locked(self, connection: Connection) -> Iterator[None]:
        """A transaction that has the schema to itself; what is not committed inside is undone."""
        connection.execute(BEGIN)
        try:
            # Never waited for by the server: an index that is being built would wait for the waiter.
            row = connection.execute(
                "SELECT pg_try_advisory_xact_lock(%s)", (self._lock,)
            ).fetchone()
            if not row or not row[0]:
                raise _Busy
            yield
        finally:
            if connection.info.transaction_status in (INTRANS, INERROR):
                connection.execute("ROLLBACK")

    def _patiently(self, what: str, act: Act) -> list[Applied]:
        """Again and again, each time a little later, while somebody is in the way."""
        give_up_at, pause_s = time.monotonic() + TRY_FOR_S, 0.02
        while True:
            try:
                return act()
            except (_Busy, *IN_THE_WAY) as error:
                if time.monotonic() > give_up_at:
                    raise self._gave_up(what, error) from error
            time.sleep(random.uniform(pause_s / 2, pause_s))
            pause_s = min(MAX_PAUSE_S, pause_s * 2)

    def _gave_up(self, what: str, error: Exception) -> StoreError:
        if isinstance(error, _Busy):
            return StoreError(
                f"another Penstock has been migrating {self._place} for {TRY_FOR_S:.0f} s",
                "wait until it has ended, then try again",
            )
        return StoreError(
            f"{what}: within {TRY_FOR_S:.0f} s there was no moment at {self._place} to do it without "
            "blocking workers",
            "try again at a quieter time, or stop the workers",
            code="no_quiet_moment",
            remedy=Remedy("store.migrate"),
        )

    # The connection.

    @contextmanager
    def _unlimited(self) -> Iterator[None]:
        """As long as it takes, also for a role that has limits; those a pooler keeps can't be lifted."""
        with self._endless_patience():
            if not self._is_pooled:
                self._connection.execute("SET statement_timeout = 0; SET lock_timeout = 0")
            try:
                yield
            finally:
                if not self._is_pooled and not self._connection.closed:
                    self._connection.execute("RESET statement_timeout; RESET lock_timeout")

    @contextmanager
    def _endless_patience(self) -> Iterator[None]:
        self._connection.patience_s = None
        try:
            yield
        finally:
            self._connection.patience_s = PATIENCE_S

    def _ours(self, text: str) -> str:
        return in_schema(text, self._schema)

    def _composed(self, text: str) -> sql.SQL:
        return sql.SQL(self._ours(text))  # both parts of it are our own

    def _set(self, name: str, milliseconds: int) -> None:
        self._connection.execute(f"SET LOCAL {name} = {milliseconds}".encode())

    def _value(self, statement: str, *values: object) -> Any:
        row = self._connection.execute(statement.encode(), values or None).fetchone()
        return row[0] if row else None
