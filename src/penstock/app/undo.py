"""Undoing a run: what that would change, and doing it batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.diffs import gravest, undo_changes
from penstock.jobs.record_changes import RecordChange, Totals
from penstock.journal.run_events import RunUndone
from penstock.store.undos import Later, Undone

if TYPE_CHECKING:
    from penstock.store.store import Store


class UndoReport(msgspec.Struct):
    """What undoing a run would do, or did."""

    run_id: int
    totals: Totals
    first: list[RecordChange]
    later: Later
    undo_run_id: int | None = None
    # An undo of this run was interrupted: there is something to do, be it only to say that it is done.
    is_cut_short: bool = False

    @property
    def is_wanted(self) -> bool:
        return self.is_cut_short or self.totals.differences > 0


def preview_undo(store: Store, run_id: int, limit: int) -> UndoReport:
    """What undoing a run would do; changes nothing."""
    totals = Totals()
    first = gravest(undo_changes(store, run_id, totals), limit)
    later = store.undos.changed_since(run_id, limit)
    return UndoReport(run_id, totals, first, later, is_cut_short=store.undos.is_undoing(run_id))


def undo(store: Store, run_id: int, limit: int, *, actor: str, reason: str) -> UndoReport:
    """Bring records back to what they were before a run, batch by batch; resumable."""
    report = preview_undo(store, run_id, limit)
    if not report.is_wanted:
        return report
    report.undo_run_id = undo_run_id = store.undos.begin(run_id, actor, reason)
    after_id: int | None = 0
    while after_id is not None:
        batch: Undone = store.undos.undo(run_id, undo_run_id, after_id)
        after_id = batch.last_id
    row = store.replays.state(undo_run_id)
    report.totals.added, report.totals.changed = row.added, row.changed
    report.totals.removed = row.removed
    done = (undo_run_id, row.changed, row.added, row.removed, report.later.count, reason)
    store.undos.end(run_id, actor, RunUndone(*done))
    return report
