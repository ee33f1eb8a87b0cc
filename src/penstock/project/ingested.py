"""Pages as they were fetched, read from their snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.project.opened import Opened

if TYPE_CHECKING:
    from penstock.http.response import Response
    from penstock.store.rows import SnapshotRow


class Ingested(Opened):
    """What the engine reads of what runs have brought."""

    def read_page(self, page: SnapshotRow) -> Response:
        """A page with its body, from its snapshot."""
        from penstock.http.response import Response
        from penstock.snapshots import SegmentPlace, open_snapshots

        snapshots = open_snapshots(self.settings.snapshots, "reader")
        try:
            place = SegmentPlace(page.hash, page.segment, page.offset, page.length)
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
