"""One statement that reads, on a connection of its own."""

from __future__ import annotations

from itertools import islice

import psycopg
from psycopg import sql

from penstock.errors import StoreUnreachable, UsageError
from penstock.store.postgres.connection import conninfo, place_of
from penstock.store.sql_answer import LONGEST_S, SqlAnswer


def read_sql(address: str, schema: str, statement: str, most: int) -> SqlAnswer:
    """The first rows of its answer. Nothing can be written, and unqualified names are those of the views."""
    try:
        with psycopg.connect(conninfo(address), autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = on")
            connection.execute(f"SET statement_timeout = {LONGEST_S * 1000:.0f}".encode())
            path = sql.SQL("SET search_path = {}, pg_catalog").format(sql.Identifier(schema))
            connection.execute(path)
            cursor = connection.cursor()
            # It is sent as one statement: what follows a semicolon is refused by the server.
            rows = tuple(islice(cursor.stream(statement.encode()), most + 1))
            if not rows:  # then the driver keeps no columns, and there is nothing to be had twice
                cursor.execute(statement.encode(), prepare=True)
            columns = tuple(each.name for each in cursor.description or ())
            return SqlAnswer(columns, rows[:most], len(rows) > most)
    except psycopg.OperationalError as error:
        if error.sqlstate is not None:
            raise _mistake(error) from None
        raise StoreUnreachable(
            f"the database at {place_of(address)} can't be reached",
            "check that the server is running",
        ) from None
    except psycopg.Error as error:
        raise _mistake(error) from None


def _mistake(error: psycopg.Error) -> UsageError:
    if "multiple commands" in str(error):
        return UsageError("one statement at a time, please", code="bad_sql")
    said = error.diag.message_primary or str(error).strip().splitlines()[0]
    return UsageError(f"Postgres: {said}", error.diag.message_hint or "", code="bad_sql")
