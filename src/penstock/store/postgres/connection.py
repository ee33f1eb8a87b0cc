"""One connection to Postgres: opened with care, never waited for without end.

A server that is gone answers nothing at all, so each wait has a limit of its own on this side; the
limits on the server's side end what this side has given up.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors as e
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from penstock.errors import ConfigError, StoreError
from penstock.settings.address import SCHEMA, is_unprotected, schema_of, without_schema

Answer = TypeVar("Answer")
# What the driver notes beside an error, the error says: nobody is to meet it on a terminal.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

OLDEST = 14
FIRST_WITH_REQUIRE_AUTH = 160_000
CONNECT_S = 5
STATEMENT_S = 10.0
LOCK_S = 5.0
# A little longer than the server's own limits, so that a slow statement is ended with a reason.
PATIENCE_S = STATEMENT_S + 2.0
PREPARE_AFTER = 2
DEFAULTS = {
    "application_name": "penstock",
    "connect_timeout": str(CONNECT_S),
    "gssencmode": "disable",
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}


class Journey(psycopg.Pipeline):
    """Statements that travel together, and nothing behind them.

    psycopg sends a Flush behind the Sync that ends a pipeline. Whatever a server reads after it was ready
    stops its clock for transactions that stand idle, and a Flush does not start it again: the locks of a
    client that falls silent then would be held for ever.
    """

    def _exit_gen(self) -> PQGen[None]:
        try:
            self._enqueue_sync()
            yield from self._communicate_gen()
        finally:
            yield from self._fetch_gen(flush=False)


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that gives up on a server that has stopped answering."""

    patience_s: float | None = PATIENCE_S

    @contextmanager
    def journey(self) -> Iterator[None]:
        """What is executed while this lasts is sent in one go."""
        self._pipeline = Journey(self)
        try:
            with self.pipeline():
                yield
        finally:
            self._pipeline = None

    def wait(
        self, gen: PQGen[Answer], interval: float = 0.1, timeout: float | None = None
    ) -> Answer:
        try:
            return super().wait(gen, interval, timeout if timeout is not None else self.patience_s)
        except e._WaitTimeout:
            # Whatever comes now belongs to a question that nobody asks any more.
            self.pgconn.finish()
            raise psycopg.OperationalError(
                f"no answer for {self.patience_s or timeout:.0f} s"
            ) from None

    def cut_off(self) -> None:
        """End whatever is waited for, from any thread: it meets a connection that was closed."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.fileno())) as same:
            same.shutdown(socket.SHUT_RDWR)


def conninfo(url: str) -> str:
    """The address with our defaults where it says nothing."""
    try:
        given = conninfo_to_dict(without_schema(url))
    except (psycopg.Error, ValueError):
        # Its message would repeat the address, password and all.
        raise ConfigError(
            "the store's address can't be read",
            "it looks like postgresql://user:password@host:5432/name",
        ) from None
    named = {key: value for key, value in given.items() if value is not None}
    usual = {**DEFAULTS, **(_careful() if is_unprotected(url, os.environ) else {})}
    return make_conninfo("", **{**usual, **named, "client_encoding": "UTF8"})


def _careful() -> dict[str, str]:
    """Where nothing says that the connection is encrypted, whoever answers gets no password as it is."""
    is_known = psycopg.pq.version() >= FIRST_WITH_REQUIRE_AUTH
    return {"require_auth": "!password"} if is_known and not os.environ.get("PGREQUIREAUTH") else {}


def place_of(url: str) -> str:
    """Where the project is, without anything secret: host:port/name, and its schema if it has its own."""
    try:
        given = conninfo_to_dict(without_schema(url))
        schema = schema_of(url)
    except (psycopg.Error, ValueError):
        return "postgresql"
    host = given.get("host") or given.get("hostaddr") or "localhost"
    port = f":{given['port']}" if given.get("port") else ""
    own = "" if schema == SCHEMA else f"?schema={schema}"
    return f"{host}{port}/{given.get('dbname') or given.get('user') or ''}{own}"


def connect(info: str, place: str) -> tuple[Connection, bool]:
    """A connection that is fit for use, and whether a pooler stands between us and the server."""
    connection = Connection.connect(info, autocommit=True, prepare_threshold=None)
    try:
        [(is_standby, version, pid, durability, encoding)] = connection.execute(
            "SELECT pg_is_in_recovery(), current_setting('server_version_num')::integer,"
            " pg_backend_pid(), current_setting('synchronous_commit'), getdatabaseencoding()::text"
        ).fetchall()
        if is_standby:
            raise StoreError(
                f"{place} is a standby: its data may be old, and it accepts no writes",
                "name the primary server in `store:`",
            )
        if version // 10_000 < OLDEST:
            raise StoreError(
                f"{place} is Postgres {version // 10_000}; Penstock needs {OLDEST} or newer",
                "upgrade the server",
            )
        if durability == "off":
            raise StoreError(
                f"{place} has synchronous_commit off: committed data could be lost",
                "set it to on for this role or database",
            )
        if encoding != "UTF8":
            raise StoreError(
                f"{place} has the encoding {encoding}, which can't hold every text",
                "make another database: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
            )
    except BaseException:
        connection.close()
        raise
    is_pooled = pid != connection.info.backend_pid
    if not is_pooled:
        connection.prepare_threshold = PREPARE_AFTER
    return connection, is_pooled
