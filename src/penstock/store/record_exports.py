"""Exports of records: what was written between two cursors, exact by version, also while others write.

A cursor is a place in the order in which writes became visible, not a time: clocks step, and on a server
transactions end out of order. Each database has its own way to it. A cursor is known only to the database
that made it, so one from before a copy or after a backup is refused and never read as something else.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import msgspec

from penstock.journal.audit_events import RecordsExported
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.rows import RecordRow

EXPORT_PAGE = 1000
# Writers from before this schema leave no trace of when they wrote.
SCHEMA = 21
KEPT_S = 400 * 86_400.0


class ExportCursor(msgspec.Struct, frozen=True):
    """`token` is what operators keep, `seen` what the database made of it."""

    token: str
    seen: str


class ExportPage(msgspec.Struct, frozen=True):
    """The records of a page of keys that are in the range, and the last key that was looked at."""

    last: str | None
    records: list[RecordRow]


class RecordExports(Noun):
    """The verbs of exports."""

    def begin(self) -> ExportCursor:
        """A cursor behind everything that is written now, and before everything that will be."""
        token = secrets.token_hex(12)
        with self._db.writing() as now:
            self._db.do("add_export_cursor", token=token, now=now)
            self._db.do("drop_export_cursors", before=now - KEPT_S)
            seen = self._db.value("export_cursor", token=token)
        return ExportCursor(token, seen)

    def cursor(self, token: str) -> ExportCursor | None:
        seen = self._db.value("export_cursor", token=token)
        return None if seen is None else ExportCursor(token, seen)

    def note(self, event: RecordsExported, actor: str) -> None:
        """Write down that an export is in place."""
        with self._db.writing() as now:
            ledger = Ledger(self._db, now)
            ledger.journal(event, actor=actor)
            ledger.write()

    def untraced_writers(self) -> list[str]:
        """Workers whose code does not say when it wrote a record."""
        rows = self._db.rows("workers_before_schema", now=self._db.now(), schema=SCHEMA)
        return [row[0] for row in rows]

    def pages(
        self,
        collection: str,
        upto: ExportCursor,
        *,
        since: ExportCursor | None = None,
        run_id: int | None = None,
        after_key: str = "",
    ) -> Iterator[ExportPage]:
        """What was written since one cursor and before another, in the order of keys, page by page.

        Each record is in the last version that it had at `upto`, or that a run gave it; removed ones, too.
        """
        while True:
            page = self._db.decoded(
                "export_page",
                ExportPage,
                collection=collection,
                after_key=after_key,
                limit=EXPORT_PAGE,
                seen_since=None if since is None else since.seen,
                seen_upto=upto.seen,
                run_id=run_id,
            )
            if page.last is None:
                return
            yield page
            after_key = page.last
