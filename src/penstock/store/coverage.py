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
from penstock.store.records import NAME_BYTES


class CoveredRow(msgspec.Struct, frozen=True, array_like=True):
    """A stretch of time of one partition, and the run that has ingested it first."""

    partition: str
    start_at: float
    end_at: float
    run_id: int


class Coverage:
    """The verbs of what is ingested and what is missing."""

    _db: Database

    def covered(
        self, source_id: int, partitions: Sequence[str], start_at: float, end_at: float
    ) -> list[CoveredRow]:
        """What is ingested of a stretch of time, by partition and start; it may overlap."""
        names = {bounded_text(name, NAME_BYTES): name for name in partitions}
        span = {"start_at": start_at, "end_at": end_at}
        found = self._db.decoded(
            "covered",
            list[CoveredRow],
            source_id=source_id,
            partitions=to_json(list(names)),
            **span,
        )
        return [CoveredRow(names[c.partition], c.start_at, c.end_at, c.run_id) for c in found]

    def backlog(self, run_id: int, planner: str) -> tuple[int, int]:
        """How many jobs of a run wait or run, beside the one that plans them, and how many have ended."""
        [(waiting, ended)] = self._db.rows("backlog", run_id=run_id, planner=planner)
        return int(waiting), int(ended)


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
