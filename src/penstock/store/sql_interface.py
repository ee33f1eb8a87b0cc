"""The SQL interface: views over our own tables, with triggers that put what clients ask for into the inbox.

They belong to a database and not to the project: a copy does not carry them, and no migration makes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from penstock.errors import Refused
from penstock.journal.service_events import SqlInterfaceInstalled, SqlInterfaceRemoved
from penstock.store.database import Database
from penstock.store.ledger import Ledger
from penstock.store.queries import folder_of

VIEWS = ("ingestion_jobs", "source_site_schemas", "supplier_references", "organizations")


@dataclass(frozen=True, slots=True)
class Installed:
    """Where the views are, and what is wrong with them."""

    schema: str
    problems: tuple[str, ...] = ()


class Dialect(Protocol):
    """What each database does in its own way."""

    def installed(self) -> Installed | None: ...

    def refuse(self, schema: str) -> None:
        """Refuse a place where the views can't be."""
        ...

    def make(self, schema: str) -> Sequence[str]:
        """Make all of it; answers with what could not be done and is not needed to go on."""
        ...

    def drop(self, schema: str) -> None: ...


class SqlInterface:
    """The verbs of the interface, over one database."""

    def __init__(self, db: Database, dialect: Dialect) -> None:
        self._db = db
        self._dialect = dialect

    def installed(self) -> Installed | None:
        return self._dialect.installed()

    def install(self, schema: str, actor: str, reason: str) -> Sequence[str]:
        """Make the views, or make them again; answers with notes."""
        with self._db.writing() as now:
            known = self._dialect.installed()
            if known is not None and known.schema != schema:
                raise Refused(
                    f"the SQL interface is in {known.schema} already",
                    "remove it there first",
                    code="sql_elsewhere",
                )
            if known is not None:
                self._dialect.drop(schema)
            self._dialect.refuse(schema)
            notes = self._dialect.make(schema)
            ledger = Ledger(self._db, now)
            ledger.journal(SqlInterfaceInstalled(schema, reason), actor=actor)
            ledger.write()
            return notes

    def remove(self, actor: str, reason: str) -> str | None:
        """Drop the views; answers with where they were, None if there were none."""
        with self._db.writing() as now:
            known = self._dialect.installed()
            if known is None:
                return None
            self._dialect.drop(known.schema)
            ledger = Ledger(self._db, now)
            ledger.journal(SqlInterfaceRemoved(known.schema, reason), actor=actor)
            ledger.write()
            return known.schema


@cache
def parts(package: str) -> dict[str, str]:
    """The files of a database's interface, by name."""
    folder = folder_of(package) / "interface"
    return {file.stem: file.read_text("utf-8") for file in sorted(folder.glob("*.sql"))}


def digest_of(text: str) -> str:
    """What tells one version of the interface from another."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
