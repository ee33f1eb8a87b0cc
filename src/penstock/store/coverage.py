"""Coverage: which stretches of time of which partition have been ingested."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.jobs.effects import Covered
from penstock.jobs.job import Owned
from penstock.jobs.run_policy import policy_of
from penstock.store.checkpoints import kinds_of
from penstock.store.database import Database, bounded_text, to_json
from penstock.store.ledger import Ledger
from penstock.store.record_rows import NAME_BYTES


class CoveredRow(msgspec.Struct, frozen=True, array_like=True):
    """A stretch of time of one partition, and the run that has ingested it first."""

    partition: str
    start_at: float
    end_at: float
    run_id: int


def note_coverage(db: Database, ledger: Ledger, covered: Sequence[tuple[Owned, Covered]]) -> None:
    """What accepted attempts have ingested; the first run that did stands with it.

    Of a window that has not ended yet, the part that has: the rest can't have been there.
    """
    kinds = kinds_of(db, {job.run_id for job, _ in covered})
    rows = {}
    growing = []
    for job, stretch in covered:
        end_at = min(stretch.end_at, ledger.now)
        if policy_of(kinds[job.run_id]).covers and stretch.start_at < end_at:
            partition = bounded_text(stretch.partition, NAME_BYTES)
            where = (job.source_id, partition, stretch.start_at, end_at)
            rows[where] = (*where, job.run_id)
            if end_at < stretch.end_at:
                growing.append(where)
    if growing:
        db.do("outgrow", covered=to_json(sorted(growing)))
    if rows:
        db.do("cover", now=ledger.now, covered=to_json([rows[where] for where in sorted(rows)]))
