"""The SQL interface in a file: views, and triggers instead of what can't be written to them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.errors import Refused
from penstock.store.sql_interface import VIEWS, Installed, parts
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.sqlite.migrate import PACKAGE

# A file has no schemas: its own name for where its tables are.
SCHEMA = "main"
_NAME = re.compile(r"CREATE (?:VIEW|TRIGGER) (\w+)")


def statements() -> dict[str, str]:
    """What there is to make, by name: each as the file will show it."""
    found = parts(PACKAGE)
    text = found["views"] + found["triggers"].replace("{candidates}", found["candidates"].strip())
    pieces = re.split(r"^(?=CREATE )", text, flags=re.MULTILINE)[1:]
    whole = [re.sub(r"^--.*\n?", "", piece, flags=re.MULTILINE).strip() for piece in pieces]
    return {_NAME.match(each)[1]: each.removesuffix(";") for each in whole}  # type: ignore[index]


class SqliteInterface:
    """The dialect of SQLite."""

    def __init__(self, db: SqliteDatabase) -> None:
        self._db = db

    def installed(self) -> Installed | None:
        wanted, known = statements(), self._known()
        if not known:
            return None
        lacking = [f"{name} is missing" for name in wanted if name not in known]
        other = [
            f"{name} is of another version"
            for name, text in known.items()
            if name in wanted and text != wanted[name]
        ]
        return Installed(SCHEMA, (*lacking, *other))

    def _known(self) -> dict[str, str]:
        """Our views and triggers; a view of somebody else by one of our names has no trigger of ours."""
        rows = self._db.run_sql(
            "SELECT name, sql FROM sqlite_schema WHERE type IN ('view', 'trigger')"
        )
        known = {name: text for name, text in rows if name in statements()}
        is_ours = any(name.startswith("penstock_") for name in known)
        return known if is_ours else {}

    def refuse(self, schema: str) -> None:
        if schema != SCHEMA:
            raise Refused(
                "a SQLite file has no schemas",
                "leave --schema out: the views are beside the tables",
                code="no_schemas",
            )
        taken = self._db.run_sql("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
        for (name,) in taken:
            if name in VIEWS:
                raise Refused(
                    f"the file has a {name} that is not Penstock's",
                    "rename or drop it, then try again",
                    code="name_taken",
                )

    def make(self, schema: str) -> Sequence[str]:
        for text in statements().values():
            self._db.run_sql(text)
        return ()

    def drop(self, schema: str) -> None:
        for name in VIEWS:  # a view takes its triggers with it
            self._db.run_sql(f"DROP VIEW IF EXISTS {name}")
