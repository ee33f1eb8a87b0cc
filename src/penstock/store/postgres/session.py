"""One connection to Postgres, made again whenever it is lost: its transactions, and the queries it runs.

Postgres's own errors stop here; what leaves this module is a StoreError that says what to do.
"""

from __future__ import annotations

import os
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import msgspec
import psycopg
from psycopg import errors as e

from penstock.clock import Clock
from penstock.errors import StoreCorrupt, StoreError, StoreTooSlow
from penstock.settings.address import schema_of
from penstock.store.database import ONLY_READS, Decoded, Overtaken, storable_text
from penstock.store.postgres.connection import (
    LOCK_S,
    PATIENCE_S,
    STATEMENT_S,
    Connection,
    connect,
    conninfo,
    place_of,
)
from penstock.store.postgres.error_meanings import WORN_OUT, meaning
from penstock.store.postgres.hints import Hints
from penstock.store.postgres.migrate import PACKAGE
from penstock.store.postgres.schema_names import channel_of, queries_in

ROUND_TRIPS = 5
TIME = "SELECT extract(epoch FROM clock_timestamp())::double precision"
# Set for each transaction and not for the session: a pooler gives every transaction another session.
# The planner is told what it can't know: batches are small beside the tables, which grow after the
# first plan was made.
BEGIN = f"""
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL statement_timeout = {STATEMENT_S * 1000:.0f};
SET LOCAL lock_timeout = {LOCK_S * 1000:.0f};
SET LOCAL idle_in_transaction_session_timeout = {STATEMENT_S * 1000:.0f};
SET LOCAL enable_seqscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL jit = off;
{TIME}
"""
# A page shows a few rows of many: compiling a plan or starting processes for it takes longer than running it.
ONE_MOMENT = """
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0
"""
# What makes work for somebody who may be waiting for some.
NEWS = frozenset(
    {
        "add_jobs", "bury_jobs", "release_jobs", "reopen_run_if_ended_badly", "resume_run_if_paused",
        "resume_source_if_paused", "retry_job_if_stopped", "retry_quarantined_of_run",
        "start_run_if_draft", "drop_hold", "unhold_job_if_held", "release_legally_if_held", "activate_if_in",
        "set_robots", "set_terms", "set_owner",
    }
)  # fmt: skip
# What a turn without ends begins with: after these alone there is nothing to let go of.
HARMLESS = frozenset({"is_registered", "next_due"})


class Session:
    """For one thread of one process."""

    def __init__(self, url: str, clock: Clock, time: Clock | None) -> None:
        self.place = place_of(url)
        self.namespace = schema_of(url)
        self.origin: str | None = None
        self._info = conninfo(url)
        self._clock = clock
        self._time = time
        self._pid = os.getpid()
        self._queries = queries_in(PACKAGE, self.namespace)
        self._connection: Connection | None = None
        self._is_pooled = False
        self._locked_runs: set[int] = set()
        # What was committed at each moment at which this transaction has read lanes.
        self._lanes_read: set[str] = set()
        self._has_news = False
        self._is_writing = False
        self._is_reading = False
        self.has_to_let_go = False
        self._put_off: list[tuple[bytes, dict[str, Any]]] = []
        self._round_trips_s: deque[float] = deque(maxlen=ROUND_TRIPS)
        self._patience_s: float | None = PATIENCE_S
        self._is_given_up = False
        name = uuid.uuid4().hex[:12]
        self.hints = Hints(self._info, name, clock, channel_of(self.namespace))

    # The connection.

    def _open(self) -> Connection:
        if os.getpid() != self._pid:
            raise StoreError("a database connection was carried into a forked process")
        if self._connection is not None and self._connection.closed:
            self._discard()
        if self._connection is None:
            if self._is_given_up:
                raise psycopg.OperationalError("this connection was given up")
            if self._is_writing or self._is_reading:
                # On a new connection the rest of the transaction would be written without its beginning.
                raise psycopg.OperationalError("the connection was lost")
            self._connection, self._is_pooled = connect(self._info, self.place)
            self._connection.patience_s = self._patience_s
            self.hints.is_pooled = self._is_pooled
        return self._connection

    def give_up(self) -> None:
        """Ask nothing more, and end what is being asked: for who leaves while the server is silent."""
        self._is_given_up = True
        if (connection := self._connection) is not None:
            connection.cut_off()

    def close(self) -> None:
        if os.getpid() == self._pid:
            self.hints.close()
            self._discard()

    def reopen(self) -> None:
        self._discard()

    def _discard(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            self._explain(error)
        except msgspec.DecodeError as error:
            raise StoreCorrupt(f"{self.place} returned invalid data ({error})") from error

    def _explain(self, error: psycopg.Error) -> NoReturn:
        """Raise what this error means for an operator; a connection that is no use is dropped."""
        connection = self._connection
        is_gone = connection is None or connection.broken or connection.closed
        if is_gone or isinstance(error, WORN_OUT):
            self._discard()
        if self._is_reading and isinstance(error, e.QueryCanceled):
            raise StoreTooSlow("the read took too long, and was given up") from error
        raise meaning(error, self.place, is_gone) from error

    # Time and transactions.

    def now(self) -> float:
        if self._time is not None:
            return self._time.now()
        with self._translated():
            row = self._open().execute(TIME).fetchone()
        return float(row[0]) if row else 0.0

    def monotonic(self) -> float:
        return self._clock.monotonic()

    @contextmanager
    def only_reading(self, longest_s: float) -> Iterator[None]:
        # For the transaction and not for the session: behind a pooler the next one has this session.
        with self._translated():
            self._open().execute(
                f"{ONE_MOMENT}; SET LOCAL statement_timeout = {longest_s * 1000:.0f};"
                f" SET LOCAL idle_in_transaction_session_timeout = {STATEMENT_S * 1000:.0f}"
            )
            self._is_reading = True
            try:
                yield
            finally:
                self._is_reading = False
                self._roll_back()

    @contextmanager
    def writing(self) -> Iterator[float]:
        if self._is_reading:
            raise RuntimeError(ONLY_READS)
        with self._translated():
            now = self._begin()
            self._is_writing = True
            try:
                yield now
                self._commit()
            except BaseException:
                self._roll_back()
                raise
            finally:
                self._is_writing = False
        self._tell_others()

    @contextmanager
    def at_one_moment(self) -> Iterator[float]:
        if self._is_reading:
            yield self.now()
            return
        with self._translated():
            self._open().execute(ONE_MOMENT)
            try:
                yield self.now()
            finally:
                self._roll_back()

    def let_go(self) -> float:
        with self._translated():
            self._commit()
            return self._begin()

    def _begin(self) -> float:
        self._locked_runs.clear()
        self._lanes_read.clear()
        connection = self._open()
        began = self._clock.monotonic()
        cursor = connection.execute(BEGIN)
        self._round_trips_s.append(self._clock.monotonic() - began)
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        self.has_to_let_go = False
        return self._time.now() if self._time is not None else float(row[0] if row else 0)

    def _commit(self) -> None:
        said = self._run(b"COMMIT").statusmessage
        if said != "COMMIT":
            # The server answers so, and with no error, when a statement before it has failed.
            raise psycopg.InternalError(f"the transaction was not committed ({said})")

    def _roll_back(self) -> None:
        self._put_off.clear()
        connection = self._connection
        if connection is None or connection.broken or connection.closed:
            self._discard()
            return
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            self._discard()

    def _tell_others(self) -> None:
        if self._has_news and self._connection is not None:
            self._has_news = False
            self.hints.give(self._connection)

    @contextmanager
    def nested(self) -> Iterator[None]:
        with self._translated():
            self._run(b"SAVEPOINT nested")
            try:
                yield
            except Overtaken:
                self._locked_runs.clear()  # some may have been locked since the savepoint
                self._run(b"ROLLBACK TO SAVEPOINT nested")
                raise
            self._run(b"RELEASE SAVEPOINT nested")

    @contextmanager
    def patient(self) -> Iterator[None]:
        self._patience_s = None
        try:
            self._open_with_patience()
            yield
        finally:
            self._wait_for(PATIENCE_S)

    @contextmanager
    def hurried(self, patience_s: float) -> Iterator[None]:
        """While this lasts, give up on a server that has not answered for so long."""
        self._wait_for(patience_s)
        try:
            yield
        finally:
            self._wait_for(PATIENCE_S)

    def _wait_for(self, patience_s: float) -> None:
        self._patience_s = patience_s
        if self._connection is not None:
            self._connection.patience_s = patience_s

    def _open_with_patience(self) -> None:
        with self._translated():
            self._open().patience_s = None

    @property
    def round_trip_s(self) -> float:
        """How long the way to the server and back takes: the shortest of late, and what can't be less."""
        return min(self._round_trips_s, default=0.0)

    # Queries.

    def _execute(self, name: str, values: dict[str, Any]) -> psycopg.Cursor[tuple[Any, ...]]:
        self._prepare(name, values)
        return self._run(self._queries[name].encode(), values)

    def _prepare(self, name: str, values: dict[str, Any]) -> None:
        if name in NEWS:
            self._has_news = True
        if name not in HARMLESS:
            self.has_to_let_go = True
        for key, value in values.items():
            if type(value) is str and ("\x00" in value or not value.isascii()):
                values[key] = storable_text(value)

    def _run(
        self, query: bytes, values: dict[str, Any] | None = None
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        """This statement, behind those that were put off, in one journey."""
        connection = self._open()
        if not self._put_off:
            return connection.execute(query, values)
        put_off, self._put_off = self._put_off, []
        with connection.journey():
            for each in put_off:
                connection.execute(*each)
            return connection.execute(query, values)

    def later(self, name: str, **values: Any) -> None:
        if self._is_pooled or not self._is_writing:
            self.do(name, **values)
            return
        self._prepare(name, values)
        self._put_off.append((self._queries[name].encode(), values))

    def do(self, name: str, **values: Any) -> int:
        with self._translated():
            return self._execute(name, values).rowcount

    def rows(self, name: str, **values: Any) -> list[Any]:
        with self._translated():
            return self._execute(name, values).fetchall()

    def value(self, name: str, **values: Any) -> Any:
        with self._translated():
            row = self._execute(name, values).fetchone()
        return row[0] if row is not None else None

    def json(self, name: str, **values: Any) -> Any:
        text = self.value(name, **values)
        return None if text is None else self._decode(text, object)

    def decoded(self, name: str, kind: type[Decoded], /, **values: Any) -> Decoded:
        return self._decode(self.value(name, **values), kind)

    def _decode(self, text: str, kind: type[Decoded]) -> Decoded:
        with self._translated():
            return msgspec.json.decode(text, type=kind)
