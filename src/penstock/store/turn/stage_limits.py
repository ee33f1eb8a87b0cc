"""Bounds: a stage that follows its own items, or that is only tried, does not grow without end."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.jobs.job import NewJob, Owned, bounded_key
from penstock.journal.run_events import RunLimitReached
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger

Child = tuple[int | None, NewJob]


def within_bounds(
    db: Database, ledger: Ledger, run_id: int, source_id: int, jobs: Sequence[Child]
) -> Sequence[Child]:
    """These jobs, without those that a full stage has no room for. Known keys take no room."""
    kept = list(jobs)
    for stage, facts in ledger.stages(run_id).items():
        most = facts.bounds.jobs if facts.bounds is not None else None
        if most is not None and any(job.stage == stage for _, job in kept):
            kept = _fitting(db, ledger, run_id, source_id, kept, stage, most)
    return kept


def _fitting(
    db: Database,
    ledger: Ledger,
    run_id: int,
    source_id: int,
    jobs: list[Child],
    stage: str,
    most: int,
) -> list[Child]:
    total = int(db.value("stage_total", run_id=run_id, stage=stage) or 0)
    room = first = max(0, most - total - ledger.grown(run_id, stage))
    keys = [(stage, bounded_key(job.key)) for _, job in jobs if job.stage == stage]
    found = db.json("jobs_by_key", run_id=run_id, keys=to_json(keys))
    known = {key for _, _, key in found}
    kept: list[Child] = []
    dropped = 0
    for parent_id, job in jobs:
        key = bounded_key(job.key)
        if job.stage == stage and key not in known:
            if not room:
                dropped += 1
                continue
            room -= 1
            known.add(key)
        kept.append((parent_id, job))
    if dropped and first:
        ledger.journal(RunLimitReached(stage, most), source_id, run_id, actor="penstock")
    return kept


def not_too_deep(
    db: Database, ledger: Ledger, children: Sequence[tuple[Owned, NewJob]]
) -> Sequence[tuple[Owned, NewJob]]:
    """These children, without those that are followed further than their stage may go."""
    followed: dict[int, int] = {}
    for parent, child in children:
        if parent.stage == child.stage:
            bounds = ledger.stages(parent.run_id)[parent.stage].bounds
            if bounds is not None and bounds.depth is not None:
                followed[parent.id] = bounds.depth
    if not followed:
        return children
    wanted = {"ids": to_json(sorted(followed)), "most": max(followed.values())}
    depths = dict(db.json("depths", **wanted))
    return [
        (parent, child)
        for parent, child in children
        if parent.stage != child.stage
        or parent.id not in followed
        or depths.get(parent.id, 0) < followed[parent.id]
    ]
