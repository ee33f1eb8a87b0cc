"""Rows of rejects: written with the attempt that judged them, found by a filter, redriven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.jobs.effects import Rejection
from penstock.jobs.job import Owned
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger


class RejectRow(msgspec.Struct, frozen=True):
    id: int
    source: str
    run_id: int
    job_id: int
    stage: str
    key: str
    code: str
    reason: str
    score: float | None
    snapshot_id: int | None
    at: float
    redriven_run_id: int | None = None


@dataclass(frozen=True, slots=True)
class RejectFilter:
    """`open_only`: those that no run has taken up again."""

    source_id: int | None = None
    run_id: int | None = None
    code: str | None = None
    since: float | None = None
    ids: tuple[int, ...] | None = None
    open_only: bool = False

    def as_values(self) -> dict[str, Any]:
        return {
            "source_id": self.source_id,
            "run_id": self.run_id,
            "code": self.code,
            "since": self.since,
            "ids": None if self.ids is None else to_json(self.ids),
        }


@dataclass(frozen=True, slots=True)
class Redriven:
    """A run that judges rejects again: how many of them, and of how many items."""

    run_id: int
    rejects: int
    items: int


def add_rejects(
    db: Database, ledger: Ledger, rejections: Sequence[tuple[Owned, Rejection]]
) -> None:
    """In the transaction that ends their attempts; item, key and page come from the jobs themselves."""
    rows = [(job.id, each.code, each.reason, each.score) for job, each in rejections]
    db.do("add_rejects", now=ledger.now, rejects=to_json(rows))
    for job, _ in rejections:
        ledger.count(job.run_id, "rejected", 1)
