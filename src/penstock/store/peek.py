"""Names out of a database, for a shell that completes them: quickly, and without leaving a trace.

A file is opened read-only, and not at all if there is none; a server is asked in a transaction that can
only read. Nothing is made, migrated or registered. The store's verbs are not imported: that takes
longer than all of this.
"""

from __future__ import annotations

from pathlib import Path

from penstock.settings.address import SQLITE
from penstock.store.queries import queries

SQLITE_QUERIES, POSTGRES_QUERIES = "penstock.store.sqlite", "penstock.store.postgres"
# A person waits for it.
BUSY_MS = 200
CONNECT_S = 2
STATEMENT_MS = 1000
# By what the usage of a command calls it: the query, and what has to be known for it.
QUERIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "RUN": ("complete_runs", ()),
    "JOB": ("complete_jobs", ()),
    "STAGE": ("complete_stages", ()),
    "CAUSE": ("complete_causes", ()),
    "COLLECTION": ("complete_collections", ()),
    "KEY": ("complete_keys", ("collection",)),
    "PARTITION": ("complete_partitions", ("source",)),
    "HOST": ("complete_breakers", ()),
}

Value = str | int | None


def peek(address: str, folder: Path, query: str, **values: Value) -> list[tuple[str, str]]:
    """The rows of a named query: a word, and what to say of it."""
    if address.startswith(SQLITE):
        return _peek_into_file(folder / address.removeprefix(SQLITE), query, values)
    return _ask_server(address, query, values)


def _peek_into_file(path: Path, query: str, values: dict[str, Value]) -> list[tuple[str, str]]:
    import apsw

    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(_address(path), flags=flags)
    try:
        connection.set_busy_timeout(BUSY_MS)
        rows = connection.execute(queries(SQLITE_QUERIES)[query], values)
        return [(str(word), str(about)) for word, about in rows]
    finally:
        connection.close()


def _address(path: Path) -> str:
    """Where SQLite would have to make a file of its log, the database is read without the log."""
    log, index = (path.with_name(path.name + tail) for tail in ("-wal", "-shm"))
    mode = "mode=ro" if log.exists() and index.exists() else "immutable=1"
    return f"{path.absolute().as_uri()}?{mode}"


def _ask_server(address: str, query: str, values: dict[str, Value]) -> list[tuple[str, str]]:
    import psycopg

    from penstock.settings.address import schema_of
    from penstock.store.postgres.connection import conninfo
    from penstock.store.postgres.schema_names import queries_in

    text = queries_in(POSTGRES_QUERIES, schema_of(address))[query]
    with psycopg.connect(conninfo(address), connect_timeout=CONNECT_S) as connection:
        connection.read_only = True
        connection.execute(f"SET LOCAL statement_timeout = {STATEMENT_MS:d}".encode())
        rows = connection.execute(text.encode(), values).fetchall()
    return [(str(word), str(about)) for word, about in rows]
