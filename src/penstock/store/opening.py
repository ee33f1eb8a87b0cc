"""Which store a project has, by the address in its settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.clock import Clock
from penstock.errors import StoreError
from penstock.settings import Settings
from penstock.store.schema import Schema
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.sqlite.store import SqliteStore
from penstock.store.store import Store


def open_store(settings: Settings, clock: Clock) -> Store:
    """A connection of its own, for a thread of its own."""
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


@contextmanager
def _driver_wanted() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise StoreError(
            "this store is Postgres, and its driver is not installed",
            "pip install 'penstock[postgres]'",
        ) from error
