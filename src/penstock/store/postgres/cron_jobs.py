"""Reads the jobs of pg_cron, which may be in another database of the server than the project."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from penstock.errors import StoreError
from penstock.settings.address import schema_of
from penstock.store.cron_jobs import CronJobRow, CronJobs
from penstock.store.postgres.connection import conninfo, place_of

HERE = """
SELECT current_database()::text, current_user::text,
  coalesce(quote_ident(nullif(%s, '')), (
    SELECT min(quote_ident(n.nspname)) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relname = 'ingestion_jobs' AND c.relkind = 'v'
      AND starts_with(obj_description(c.oid, 'pg_class'), %s)))
"""
# Not every role may see where pg_cron is; `postgres` is where it is if nobody has said.
HOME = """
SELECT CASE WHEN pg_has_role('pg_read_all_settings', 'USAGE')
  THEN coalesce(current_setting('cron.database_name', true), '') ELSE 'postgres' END
"""
VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'pg_cron'"
JOBS = """
SELECT jobname::text, schedule, command, active FROM cron.job
WHERE starts_with(jobname::text, %s) AND database IN (%s, current_database()) ORDER BY jobname
"""


def read_cron_jobs(address: str, prefix: str, schema: str, home: str) -> CronJobs:
    """The jobs whose names begin so, and that run in the database of this address.

    The views are in `schema`, and pg_cron in the database `home`; without them, where they are found.
    """
    try:
        with _connection(conninfo(address)) as connection:
            mark = f"Penstock SQL interface of schema {schema_of(address)},"
            [(database, role, views)] = _rows(connection, HERE, schema, mark)
            if home in ("", database) and _rows(connection, VERSION):
                return _found(connection, database, role, views, prefix)
            home = home or _rows(connection, HOME)[0][0]
        if home in ("", database):
            return CronJobs(database, role, None, views, ())
        with _connection(make_conninfo(conninfo(address), dbname=home)) as connection:
            return _found(connection, database, role, views, prefix)
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the jobs of pg_cron can't be read: {error.diag.message_primary}",
            "grant it to the user in `store:`: GRANT USAGE ON SCHEMA cron",
        ) from None
    except psycopg.Error as error:
        why = error.diag.message_primary or str(error).strip().splitlines()[-1]
        raise StoreError(
            f"the jobs of pg_cron at {place_of(address)} can't be read: {why}"
        ) from None


def _connection(where: str) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(where, autocommit=True)


def _found(
    connection: psycopg.Connection[tuple[Any, ...]],
    database: str,
    role: str,
    views: str | None,
    prefix: str,
) -> CronJobs:
    version = next((row[0] for row in _rows(connection, VERSION)), None)
    rows = _rows(connection, JOBS, prefix, database) if version is not None else []
    return CronJobs(database, role, version, views, tuple(CronJobRow(*row) for row in rows))


def _rows(
    connection: psycopg.Connection[tuple[Any, ...]], text: str, *values: str
) -> list[tuple[Any, ...]]:
    return connection.execute(text.encode(), values or None).fetchall()
