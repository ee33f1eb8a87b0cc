"""Claiming: which lanes have work, how much of it may start, and taking it, fairly.

How deep a lane is comes from the maintained counters, what is running of it is counted from the rows
that are running: a crash can leave a wrong guess about neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from penstock.gates.lanes import (
    Budget,
    Closed,
    Grant,
    Head,
    Lane,
    LaneLimits,
    Sharing,
    decide,
    limits_for,
)
from penstock.jobs.job import Claimed, JobState
from penstock.store.sqlite.database import Database, to_json
from penstock.store.sqlite.ledger import Ledger
from penstock.store.store import Admits, Capacity

# From this many deaths on a job is a suspect: it runs apart from others that are.
WARD_DEATHS = 2

_decode_claimed = msgspec.json.Decoder(list[Claimed]).decode


def claim(
    db: Database,
    sharing: Sharing,
    ledger: Ledger,
    now: float,
    worker: str,
    capacity: Capacity,
    lanes: Sequence[Lane],
) -> list[Claimed]:
    """Take what the lanes may start and the worker can hold, fairly."""
    if not lanes:
        return []
    budget = Budget(capacity.slots, capacity.cpu, capacity.memory_mb)
    ids = _pick(db, worker, sharing.share(lanes, budget, now), capacity.admits)
    if not ids:
        return []
    chosen = to_json(ids)
    db.do("claim_if_queued", now=now, worker=worker, ids=chosen)
    claimed = _decode_claimed(db.value("claimed", ids=chosen))
    for job in claimed:
        ledger.moved(job.run_id, job.stage, JobState.QUEUED, JobState.RUNNING)
    for run_id, source_id in db.rows(
        "begin_runs", now=now, ids=to_json({j.run_id for j in claimed})
    ):
        ledger.journal("run.started", source_id, run_id)
    ledger.journal_jobs("job.started", ids, worker)
    return claimed


def ready_lanes(
    db: Database, limits: Mapping[int, LaneLimits], admits: Admits = "all"
) -> list[Lane]:
    """Every source that has queued jobs in a run that is not paused, with what is running of it."""
    running: dict[tuple[int, bool], int] = defaultdict(int)
    heads: dict[int, list[Head]] = defaultdict(list)
    facts: dict[int, tuple[bool, float]] = {}
    for row in db.json("suspect_heads" if admits == "suspect" else "ready_heads"):
        source_id, run_id, stage, unit, depth, rank, cpu, memory_mb, is_paused, cooldown = row
        heads[source_id].append(Head(run_id, stage, unit, depth, rank or 0.0, cpu, memory_mb))
        facts[source_id] = (bool(is_paused), cooldown)
    if not heads:
        return []
    for source_id, unit, count in db.json("running_counts"):
        running[source_id, unit == "candidate"] += count
    if admits == "sound":
        # A place in the lane is left for the ward: a busy lane would otherwise never let a suspect start.
        for source_id, is_candidate in _kinds_of_suspects(db):
            running[source_id, is_candidate] += 1
    return [
        Lane(
            source_id,
            tuple(found),
            limits_for(source_id, limits),
            *facts[source_id],
            running[source_id, False],
            running[source_id, True],
        )
        for source_id, found in heads.items()
    ]


def _kinds_of_suspects(db: Database) -> set[tuple[int, bool]]:
    return {(row[0], row[3] == "candidate") for row in db.json("suspect_heads")}


def opening(lane: Lane, now: float) -> float | None:
    """When a closed lane opens by itself."""
    verdict = decide(lane, now)
    return verdict.opens_at if isinstance(verdict, Closed) else None


def soonest(*times: float | None) -> float | None:
    return min((time for time in times if time is not None), default=None)


def _pick(db: Database, worker: str, grants: Sequence[Grant], admits: Admits) -> list[int]:
    """The ids to claim, in rank order within each stage; at most one job that killed workers before."""
    by_limit: dict[int, list[Grant]] = defaultdict(list)
    for grant in grants:
        by_limit[1 << (grant.count - 1).bit_length()].append(grant)
    ward_is_free = admits != "sound" and db.value("ward_count", worker=worker) == 0
    query = "pick_suspects" if admits == "suspect" else "pick"
    ids: list[int] = []
    for limit, group in by_limit.items():
        wanted = to_json([(grant.run_id, grant.stage) for grant in group])
        found = db.json(query, grants=wanted, limit=limit, ward_is_free=ward_is_free)
        for grant, jobs in zip(group, found, strict=True):
            for job_id, deaths in jobs[: grant.count]:
                if deaths >= WARD_DEATHS:
                    if not ward_is_free:
                        continue
                    ward_is_free = False
                ids.append(job_id)
    return ids
