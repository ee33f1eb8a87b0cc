"""Which store a project has, by the address in its settings."""

from __future__ import annotations

from penstock.clock import Clock
from penstock.errors import StoreError
from penstock.settings import Settings
from penstock.store.sqlite.store import SqliteStore
from penstock.store.store import Store


def open_store(settings: Settings, clock: Clock) -> Store:
    """A connection of its own, for a thread of its own."""
    if not settings.is_on_postgres:
        return SqliteStore(settings.store_file, clock)
    try:
        from penstock.store.postgres.store import PostgresStore
    except ImportError as error:
        raise StoreError(
            "this project's store is Postgres, and its driver is not installed",
            "pip install 'penstock[postgres]'",
        ) from error
    return PostgresStore(settings.store, clock)
