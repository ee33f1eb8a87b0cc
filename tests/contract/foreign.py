"""Files that are not what a database of ours should be."""

from __future__ import annotations

from pathlib import Path

import apsw

from penstock.store.sqlite.migrate import newest
from penstock.store.sqlite.store import SqliteStore
from penstock.testing import VirtualClock

NEWEST = newest()


def open_store(path: Path) -> SqliteStore:
    return SqliteStore(path, VirtualClock())


def make_newer(path: Path) -> None:
    open_store(path).close()
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", NEWEST + 1)
    connection.close()


def make_foreign(path: Path) -> None:
    """As most databases are: neither an application id nor a version of their own."""
    apsw.Connection(str(path)).execute("CREATE TABLE theirs (a)")


def make_foreign_with_id(path: Path) -> None:
    apsw.Connection(str(path)).execute("PRAGMA application_id = 77; CREATE TABLE theirs (a)")


def make_foreign_with_version(path: Path) -> None:
    apsw.Connection(str(path)).execute("PRAGMA user_version = 1")


def make_text(path: Path) -> None:
    path.write_text("not a database at all, but long enough to have a header\n" * 50)
