"""What was judged and is not wanted, written down with all that is needed to judge it again."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.jobs.effects import Rejection
from penstock.jobs.job import Owned
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger


def add_rejects(
    db: Database, ledger: Ledger, rejections: Sequence[tuple[Owned, Rejection]]
) -> None:
    """In the transaction that ends their attempts; item, key and page come from the jobs themselves."""
    rows = [(job.id, each.code, each.reason, each.score) for job, each in rejections]
    db.do("add_rejects", now=ledger.now, rejects=to_json(rows))
    for job, _ in rejections:
        ledger.count(job.run_id, "rejected", 1)
