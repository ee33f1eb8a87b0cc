"""The SQL interface: views that other programs read, and update to have something done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, place_of, size_of
from penstock.app.views.sql import (
    SqlAnswerView,
    SqlInterfaceView,
    SqlRequestView,
    answer_view,
    request_view,
)
from penstock.app.views.view import Page
from penstock.errors import Refused, UsageError
from penstock.project.sql_requests import describe_sources, perform_requests
from penstock.project.sql_sources import described_sources
from penstock.settings.address import SCHEMA, schema_of
from penstock.store.address import read_sql

NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class Sql(Noun):
    """The SQL interface of a project."""

    def install(
        self, schema: str | None = None, *, actor: str | None = None, reason: str = ""
    ) -> SqlInterfaceView:
        """Make the views, or make them again as this version has them.

        On Postgres they are in a `schema` of their own, `penstock_sql`, and two roles may use them; in a
        SQLite file they are beside the tables.
        """
        where = self._schema(schema)
        describe_sources(self._project)
        notes = self._store.sql_interface().install(where, who(actor), reason)
        return self._view(notes)

    def remove(
        self, *, dry_run: bool = False, actor: str | None = None, reason: str = ""
    ) -> SqlInterfaceView:
        """Drop the views. What clients have asked for is performed all the same; roles stay."""
        found = self._view([])
        if not dry_run:
            self._store.sql_interface().remove(who(actor), reason)
        return found

    def check(self) -> SqlInterfaceView:
        """Whether the views are there, of this version, and show the sources as they are configured."""
        return self._view([])

    def list(self, *, cursor: str | None = None, limit: int = USUAL) -> Page[SqlRequestView]:
        """What clients have asked for, newest first, and what became of it."""
        size = size_of(limit)
        rows = self._store.inbox.newest(size + 1, place_of(cursor, int))
        return page_of(rows, size, request_view, lambda row: row.id)

    def each(self, *, limit: int | None = None) -> Iterator[SqlRequestView]:
        """Iterate over all of it, or the newest `limit`, page by page."""
        return each_item(lambda cursor, size: self.list(cursor=cursor, limit=size), limit)

    def query(self, statement: str, *, limit: int = USUAL) -> SqlAnswerView:
        """The first rows of one statement that reads, such as those of docs/sql.md.

        Unqualified names are those of the views; nothing can be written. `now() - interval '30 days'` and
        `jsonb_array_length` work on SQLite, too.
        """
        if not statement.strip().rstrip(";").strip():
            raise UsageError("there is no statement", code="bad_sql")
        found = self._store.sql_interface().installed()
        if found is None:
            raise Refused("there are no views for SQL clients", code="no_views")
        text = statement.strip().rstrip(";")
        return answer_view(read_sql(self._project.settings, found.schema, text, size_of(limit)))

    def perform(self) -> int:
        """Perform what clients have asked for, as `penstock up` does every second; answers how much."""
        return perform_requests(self._project)

    def _schema(self, schema: str | None) -> str:
        settings = self._project.settings
        if not settings.is_on_postgres:
            return schema or "main"
        own = schema_of(settings.store)
        wanted = schema or ("penstock_sql" if own == SCHEMA else f"{own}_sql")
        if not NAME.fullmatch(wanted) or wanted == own or wanted.startswith("pg_"):
            raise UsageError(
                f"the views can't be in a schema {wanted!r:.70}",
                "use lower-case letters, digits and underscores, and not the schema of the tables",
                code="bad_schema",
            )
        return wanted

    def _view(self, notes: Sequence[str]) -> SqlInterfaceView:
        found, known = self._store.sql_interface().installed(), self._store.inbox.described()
        problems = [] if found is None else [*found.problems]
        wanted = described_sources(self._project.settings, self._project.source_ids)
        stale = sum(known.get(each.source_id) != each for each in wanted)
        if found is not None and stale:
            problems.append(
                f"{stale} of {len(wanted)} sources are shown as they were configured before"
            )
        return SqlInterfaceView(
            schema=None if found is None else found.schema,
            sources=len(known),
            problems=problems,
            notes=[*notes],
        )
