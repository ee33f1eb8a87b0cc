"""Records: what was ingested, to read or to take elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, page_of, place_of, size_of
from penstock.app.views.record_exports import ManifestView
from penstock.app.views.record_schemas import SchemaCheckView
from penstock.app.views.record_versions import RecordVersionView, version_views
from penstock.app.views.records import (
    CollectionView,
    ForgottenView,
    RecordView,
    record_view,
)
from penstock.app.views.view import Page
from penstock.errors import Refused, UsageError, nearest
from penstock.settings import normalise_source
from penstock.store.rows import RecordRow


class _Chosen(TypedDict):
    source_id: int | None
    run_id: int | None
    since: float | None


class Records(Noun):
    """The records of a project, by collection and key."""

    def list(
        self,
        collection: str,
        *,
        source: str | None = None,
        run: int | None = None,
        since: datetime | float | None = None,
        include_private: bool = False,
        cursor: str | None = None,
        limit: int = USUAL,
    ) -> Page[RecordView]:
        """Records of a collection in the order of their keys.

        `source` and `run` select the records that they wrote last, `since` those written since a time: a
        datetime with its zone, or seconds since the epoch. Records of private sources are left out without
        `include_private`.
        """
        size = size_of(limit)
        chosen = self._chosen(source, run, since)
        after_key = place_of(cursor, str) or ""
        found = self._store.records.each(collection, **chosen, after_key=after_key)
        rows = [*islice(self._open(found, include_private), size + 1)]
        return page_of(rows, size, record_view, lambda row: row.key)

    def each(
        self,
        collection: str,
        *,
        source: str | None = None,
        run: int | None = None,
        since: datetime | float | None = None,
        include_private: bool = False,
    ) -> Iterator[RecordView]:
        """Iterate over all of them, page by page: a million need no more memory than a few hundred."""
        chosen = self._chosen(source, run, since)
        rows = self._store.records.each(collection, **chosen)
        return map(record_view, self._open(rows, include_private))

    # `project.records(collection)` was a verb before it was a noun.
    __call__ = each

    def get(self, collection: str, key: str, *, include_private: bool = False) -> RecordView:
        """The newest version of one record; refused if there is none, or if it was removed."""
        newest = self.versions(collection, key, include_private=include_private)[-1]
        if newest.is_removed:
            raise UsageError(
                f"{collection} {key} was removed by run {newest.run}",
                "its versions say what it was; saving it again brings it back",
                code="record_removed",
            )
        return newest

    def versions(
        self, collection: str, key: str, *, include_private: bool = False
    ) -> Sequence[RecordView]:
        """Every version of one record, oldest first."""
        rows = self._store.records.versions(collection, key)
        found = [record_view(row) for row in self._open(rows, include_private)]
        if rows and not found:
            raise Refused(
                f"{collection} {key} is of a private source",
                "its content is shown only where private sources are included",
                code="record_private",
            )
        if not found:
            raise UsageError(f"{collection} has no record with the key {key!r}", code="no_record")
        return found

    def history(
        self, collection: str, key: str, *, include_private: bool = False
    ) -> Sequence[RecordVersionView]:
        """Every version of one record with the fields that it changed, oldest first."""
        return version_views(self.versions(collection, key, include_private=include_private))

    def export(
        self,
        collection: str,
        to: str | Path,
        *,
        format: str | None = None,  # noqa: A002  (as the command calls it)
        since: str | None = None,
        run: int | None = None,
        include_private: bool = False,
        overwrite: bool = False,
        on_progress: Callable[[int], None] = lambda records: None,
        actor: str | None = None,
    ) -> ManifestView:
        """Write a collection to a file or an object of a bucket, with a manifest beside it.

        `format` is jsonl, csv, parquet or duckdb, by default that of the ending. `since` is the `cursor` of
        an earlier manifest, or its path: only versions that were written after it. `run`: only what this run
        wrote. Removed records come with `is_removed` and without data. An export that was killed goes on
        where it stopped when it is called again. `on_progress` is called with how many records were read.
        """
        from penstock.app.record_export.export import Request, export

        about = (since, run, include_private, overwrite, on_progress, who(actor))
        return export(self._project, Request(collection, str(to), format, *about))

    def to_arrow(
        self,
        collection: str,
        *,
        source: str | None = None,
        run: int | None = None,
        include_private: bool = False,
    ) -> Any:
        """The present records of a collection as a `pyarrow.Table`, with the columns of an export."""
        from penstock.app.record_export.frames import arrow_table

        self.require_collection(collection)
        rows = self._store.records.each(collection, **self._chosen(source, run, None))
        return arrow_table(self._project, rows, include_private)

    def to_pandas(
        self,
        collection: str,
        *,
        source: str | None = None,
        run: int | None = None,
        include_private: bool = False,
    ) -> Any:
        """The same as a `pandas.DataFrame`."""
        from penstock.app.record_export.formats import needed

        needed("pandas", "a pandas frame")
        table = self.to_arrow(collection, source=source, run=run, include_private=include_private)
        return table.to_pandas()

    def to_polars(
        self,
        collection: str,
        *,
        source: str | None = None,
        run: int | None = None,
        include_private: bool = False,
    ) -> Any:
        """The same as a `polars.DataFrame`."""
        from penstock.app.record_export.formats import needed

        polars = needed("polars", "a polars frame")
        table = self.to_arrow(collection, source=source, run=run, include_private=include_private)
        return polars.from_arrow(table)

    def infer_schema(self, collection: str, *, include_private: bool = False) -> dict[str, Any]:
        """The JSON Schema that all present records of a collection fit, made from them.

        Records of private sources are left out without `include_private`.
        """
        from penstock.app.collection_schemas import infer

        return infer(self._project, collection, include_private=include_private)

    def check_schema(
        self, collection: str, *, schema: str | Path | None = None, limit: int = 20
    ) -> SchemaCheckView:
        """Test the present records of a collection against its schema, or against the one in a file.

        `limit` is how many of those that do not fit are shown.
        """
        from penstock.app.collection_schemas import check

        file = None if schema is None else Path(schema)
        return check(self._project, collection, file, limit)

    def forget(
        self,
        source: str,
        key: str,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> ForgottenView:
        """Erase everything that is stored under one key of a source, for good; nothing brings it back.

        Records with all versions, the pages they came from (also in their WARC files), jobs, rejects, entries
        of quarantine, log lines, and the key in the journal. Refused while a job or a replay has it in hand.
        With `dry_run`, only counts.
        """
        from penstock.app.erasure import forget

        source_id = self._known_source(source)
        return forget(self._project, source_id, source, key, dry_run, who(actor), reason)

    def collections(self) -> Sequence[CollectionView]:
        """Every collection, and how many records it has."""
        return [
            CollectionView(collection=name, records=number)
            for name, number in self._store.records.collections()
        ]

    def require_collection(self, collection: str) -> CollectionView:
        """One collection; refused if nothing was saved in it."""
        held = {each.collection: each for each in self.collections()}
        if collection not in held:
            raise UsageError(
                f"there is no collection {collection!r}",
                nearest(collection, held) or "nothing has been saved yet",
                code="no_collection",
            )
        return held[collection]

    def _open(self, rows: Iterable[RecordRow], include_private: bool) -> Iterator[RecordRow]:
        is_included = include_private or self._project.includes_private
        private = frozenset() if is_included else self._project.settings.private_sources
        return (row for row in rows if row.source not in private)

    def _chosen(
        self, source: str | None, run: int | None, since: datetime | float | None
    ) -> _Chosen:
        if run is not None:
            self._project.require_run(run)
        source_id = None if source is None else self._known_source(source)
        return {"source_id": source_id, "run_id": run, "since": _seconds(since)}

    def _known_source(self, name: str) -> int:
        """The number of a source that is configured, or was once and left its records."""
        known = self._store.sources.ids()
        key = normalise_source(name)
        if key not in known and key not in self._project.settings.sources:
            raise UsageError(f"there is no source {name!r}", nearest(name, known), code="no_source")
        return known.get(key, 0)


def _seconds(since: datetime | float | None) -> float | None:
    if not isinstance(since, datetime):
        return since
    if since.tzinfo is None:
        raise UsageError("since needs a time zone: datetime(…, tzinfo=UTC)", code="no_timezone")
    return since.timestamp()
