"""What was ingested, to read from a program: records, and pages as they were fetched."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from penstock.errors import Refused, UsageError, nearest
from penstock.project.opened import Opened
from penstock.settings import normalise_source
from penstock.snapshots import Place, open_snapshots
from penstock.sources.response import Response
from penstock.store.rows import RecordRow, SnapshotRow


class Ingested(Opened):
    """The verbs that read what runs have brought."""

    def records(
        self,
        collection: str,
        *,
        source: str | None = None,
        run: int | None = None,
        since: datetime | float | None = None,
    ) -> Iterator[RecordRow]:
        """The records of a collection in the order of their keys: all of them, read in pages as you go.

        `source` and `run` choose those that it wrote last, `since` those that were written since a time: a
        datetime with its zone, or seconds since the epoch.
        """
        if run is not None:
            self.require_run(run)
        if isinstance(since, datetime):
            if since.tzinfo is None:
                raise UsageError("since needs a time zone: datetime(…, tzinfo=UTC)")
            since = since.timestamp()
        source_id = None if source is None else self._known_source(source)
        return self.store.each_record(collection, source_id=source_id, run_id=run, since=since)

    def _known_source(self, name: str) -> int:
        """The number of a source that is configured, or was once and left its records."""
        known = {row.key: row.id for row in self.store.sources()}
        key = normalise_source(name)
        if key not in known and key not in self.settings.sources:
            raise UsageError(f"there is no source {name!r}", nearest(name, known))
        return known.get(key, 0)

    def pages(self, target: int | str) -> list[SnapshotRow]:
        """What a job fetched (its number), or what was fetched from an address; the newest first."""
        if isinstance(target, str):
            return self.store.pages_at(target)
        job = self.require_job(target)
        found = self.store.pages_of(job.id)
        if not found:
            why = f": {job.error}" if job.error else ""
            raise Refused(f"nothing was fetched for job {job.id} ({job.state}{why})")
        return found

    def read_page(self, page: SnapshotRow) -> Response:
        """A page with its body, from its snapshot."""
        snapshots = open_snapshots(self.settings.snapshots, "reader")
        try:
            place = Place(page.hash, page.segment, page.offset, page.length)
            capture = snapshots.read(place)
        finally:
            snapshots.close()
        return Response(
            page.final_url or page.url,
            page.url,
            page.status,
            page.headers,
            capture.body,
            page.fetched_at,
            is_from_snapshot=True,
            snapshot_id=page.id,
            content_hash=page.hash,
        )
