"""Which store a project has, by the address in its settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.clock import Clock
from penstock.errors import StoreError
from penstock.journal.origin import current_origin
from penstock.settings import Settings
from penstock.settings.address import SQLITE, another_place
from penstock.store.schema import Schema
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.sqlite.store import SqliteStore
from penstock.store.store import Store

if TYPE_CHECKING:
    from penstock.store.copy_progress import End
    from penstock.store.cron_jobs import CronJobs
    from penstock.store.sql_answer import SqlAnswer


def open_store(settings: Settings, clock: Clock) -> Store:
    """A connection of its own, for a thread of its own. Refused where another project is."""
    store = _open(settings, clock)
    try:
        another = another_place(settings.store, settings.project)
        store.claim_for(settings.project, settings.store_name, another)
        store.claim_environment(settings.environment_name, settings.store_name, settings.is_apart)
        if settings.cell is not None:
            store.claim_cell(settings.cell.name, settings.cell.number, settings.store_name)
        else:
            store.refuse_cell(settings.store_name)
    except BaseException:
        store.close()
        raise
    return store


def _open(settings: Settings, clock: Clock) -> Store:
    if not settings.is_on_postgres:
        return SqliteStore(settings.store_file, clock)
    with _driver_wanted():
        from penstock.store.postgres.store import PostgresStore
    return PostgresStore(settings.store, clock)


def open_schema(settings: Settings, clock: Clock) -> Schema:
    """The schema as it is: neither made nor brought up to date by looking at it."""
    if not settings.is_on_postgres:
        return SqliteDatabase(settings.store_file, clock, purpose="schema")
    with _driver_wanted():
        from penstock.store.postgres.database import PostgresDatabase
    return PostgresDatabase(settings.store, clock, purpose="schema")


def open_end(address: str, folder: Path, clock: Clock) -> End:
    """A database as one end of a copy, by its address; a file's name is relative to the folder."""
    if address.startswith(SQLITE):
        from penstock.store.sqlite.copy_end import SqliteEnd

        file = folder / address.removeprefix(SQLITE)
        database = SqliteDatabase(file, clock, purpose="copy")
        database.origin = current_origin()
        return SqliteEnd(database)
    with _driver_wanted():
        from penstock.store.postgres.copy_end import PostgresEnd
        from penstock.store.postgres.database import PostgresDatabase
    served = PostgresDatabase(address, clock, purpose="copy")
    served.origin = current_origin()
    return PostgresEnd(served)


def grants_for(schema: str, role: str) -> list[str]:
    """The statements that let a role of the server work in this schema, and nothing more."""
    with _driver_wanted():
        from penstock.store.postgres.grants import grants
    return grants(schema, role)


def drop_scratch_schema(address: str, schema: str) -> None:
    """Drop the schema of a scratch project; any other is refused."""
    with _driver_wanted():
        from penstock.store.postgres.scratch import drop_schema
    drop_schema(address, schema)


def cron_jobs_of(settings: Settings, prefix: str, schema: str = "", home: str = "") -> CronJobs:
    """The jobs of pg_cron that are of this project; `home` is the database of its server that has pg_cron."""
    with _driver_wanted():
        from penstock.store.postgres.cron_jobs import read_cron_jobs
    return read_cron_jobs(settings.store, prefix, schema, home)


def read_sql(settings: Settings, schema: str, statement: str, most: int) -> SqlAnswer:
    """The first rows of a statement that reads; `schema` has the views, on Postgres."""
    if not settings.is_on_postgres:
        from penstock.store.sqlite import sql_query as of_file

        return of_file.read_sql(settings.store_file, statement, most)
    with _driver_wanted():
        from penstock.store.postgres import sql_query as of_server
    return of_server.read_sql(settings.store, schema, statement, most)


@contextmanager
def _driver_wanted() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise StoreError(
            "this store is Postgres, and its driver is not installed",
            "pip install 'penstock[postgres]'",
        ) from error
