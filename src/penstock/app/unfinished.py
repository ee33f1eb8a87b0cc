"""Runs that have not ended: asked for again, they go on, because a second one beside them would do everything
twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from penstock.app.paging import LARGEST

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.jobs.run import RunOptions
    from penstock.store.rows import RunRow
    from penstock.store.store import Store

# By so much the clocks of a host and of its database may differ.
SKEW_S = 3600.0


def unfinished_runs(store: Store, source: str | None = None) -> Iterator[RunRow]:
    """All active runs, of one source or of all, the newest first."""
    before_id: int | None = None
    while rows := store.runs.newest(source, True, LARGEST, before_id):
        yield from rows
        before_id = rows[-1].id


def unfinished_run(store: Store, source: str, is_meant: Callable[[RunRow], bool]) -> RunRow | None:
    """The newest active run of a source that is meant; one that is prepared for drains never is."""
    for row in unfinished_runs(store, source):
        is_drained = row.for_drains and not row.options.by_release
        if not is_drained and is_meant(row):
            return row
    return None


def unfinished_backfill(project: Nouns, source: str, options: RunOptions) -> RunRow | None:
    """The same backfill, interrupted. One of another range is another backfill."""

    def is_meant(row: RunRow) -> bool:
        known = replace(
            row.options, reconciles=None, reconciled_windows=None, waits_for_recovery=False
        )
        is_same = replace(known, end_at=options.end_at) == options
        is_share = row.options.takes is not None
        return row.kind == "backfill" and not is_share and is_same and _may_end_alike(row, options)

    _ = project.source_ids  # a source that is new in the file becomes known to the store
    return unfinished_run(project.connection, source, is_meant)


def _may_end_alike(row: RunRow, options: RunOptions) -> bool:
    """Whether a backfill that was asked for to this end could be that run.

    What has not happened yet can't be fetched, so a run that was asked for to today ends when it was started:
    the same words mean a later end at each call.
    """
    known, wanted = row.options.end_at or 0.0, options.end_at or 0.0
    is_until_now = known > row.created_at - SKEW_S
    return wanted == known or (is_until_now and wanted > known)
