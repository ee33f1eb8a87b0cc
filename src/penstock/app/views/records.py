"""Records as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.view import Hidden, Time, View

if TYPE_CHECKING:
    from penstock.store.rows import RecordRow


class RecordView(View, frozen=True, kw_only=True):
    """A record, or one version of it: who wrote it, and when.

    A version that took the record away has `is_removed`; it is missing from all others.
    """

    key: str
    data: Any
    score: float | None
    source: str
    run: int
    version: int
    updated_at: Time
    is_removed: bool | msgspec.UnsetType = msgspec.UNSET
    snapshot_id: Hidden[int | None]
    pipeline_version: Hidden[str]


class CollectionView(View, frozen=True, kw_only=True):
    """A collection, and how many records it has."""

    collection: str
    records: int


def record_view(row: RecordRow) -> RecordView:
    return RecordView(
        key=row.key,
        data=row.data,
        score=row.score,
        source=row.source,
        run=row.run,
        version=row.version,
        updated_at=row.updated_at,
        is_removed=row.is_removed or msgspec.UNSET,
        snapshot_id=row.snapshot_id,
        pipeline_version=row.pipeline_version,
    )


class ForgottenView(View, frozen=True, kw_only=True):
    """What was erased of a key, or would be: `texts` are errors, reasons and messages that had it in them.

    `is_scrubbed` where the free space of the database was overwritten, too; a server does that later.
    """

    source: str
    key: str
    records: int
    versions: int
    snapshots: int
    jobs: int
    rejects: int
    log_lines: int
    events: int
    texts: int
    is_done: bool = msgspec.field(name="done")
    is_scrubbed: bool = msgspec.field(name="scrubbed")
