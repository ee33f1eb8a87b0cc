"""The schema: made and brought up to date under a lock, each migration in one transaction."""

from __future__ import annotations

from penstock.errors import StoreError
from penstock.store.postgres.connection import Connection
from penstock.store.queries import migrations

PACKAGE = "penstock.store.postgres"
# "PSTK": whoever migrates holds this until its transaction ends.
LOCK = 0x5053544B


def ensure_schema(connection: Connection, place: str) -> None:
    """Refuse a schema that is too new, and make or mend one that is missing or old."""
    newest = migrations(PACKAGE)[-1][0]
    version = schema_version(connection)
    if version > newest:
        raise StoreError(
            f"{place} has schema {version}, this Penstock knows up to {newest}",
            "upgrade Penstock; it does not open a newer schema",
        )
    if version < newest:
        migrate(connection)


def schema_version(connection: Connection) -> int:
    """The newest migration that was applied; 0 in a database that has none."""
    [(is_there,)] = connection.execute(
        "SELECT to_regclass('penstock.migration') IS NOT NULL"
    ).fetchall()
    if not is_there:
        return 0
    [(number,)] = connection.execute(
        "SELECT coalesce(max(number), 0) FROM penstock.migration"
    ).fetchall()
    return int(number)


def migrate(connection: Connection) -> None:
    """Apply what is missing; several processes may try at once, and one does it."""
    for number, name, text in migrations(PACKAGE):
        with connection.transaction():
            connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
            connection.execute("CREATE SCHEMA IF NOT EXISTS penstock")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS penstock.migration (number integer PRIMARY KEY,"
                " name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
            )
            if schema_version(connection) < number:
                connection.execute(text.encode())
                connection.execute(
                    "INSERT INTO penstock.migration (number, name) VALUES (%s, %s)", (number, name)
                )
