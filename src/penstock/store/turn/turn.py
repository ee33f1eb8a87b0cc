"""The turn: settle what ended, then claim what may start.

While one turn is on the disk, the next outcomes pile up and share the next one: group commit without
a timer. Every statement takes its whole batch as one JSON parameter.

Where others write at the same time, everybody takes locks in one order, so that nobody waits in a
circle: the worker, its jobs, breakers, new keys in their order, hosts, sources, runs. Claiming starts with
breakers, so the two halves of a turn are two transactions there; nothing needs them to be one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.gates.capacity import Capacity
from penstock.gates.decide import concurrency_of
from penstock.gates.lane import Lane, LaneLimits
from penstock.jobs.job import Claimed, JobState
from penstock.journal.job_events import JobDue
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger
from penstock.store.snapshots import Kept, keep_snapshots
from penstock.store.turn.answered_entries import close_after_turn
from penstock.store.turn.breaker_watch import weigh, write_levels
from penstock.store.turn.claim import LaneReader, claim, opening, soonest
from penstock.store.turn.effects import End
from penstock.store.turn.memory import Memory
from penstock.store.turn.run_progress import advance_runs
from penstock.store.turn.settlement import accept, settle
from penstock.store.turn.watermarks import Floors

WAKE_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn did: which ends were accepted, which came too late, what is to be started.

    Times are the store's: `now` is when the turn was taken, by the only clock that counts. For `rest_s`
    the worker is to leave what there is to others.
    """

    settled: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    claimed: list[Claimed] = field(default_factory=list)
    snapshot_ids: list[int] = field(default_factory=list)
    ended_runs: list[int] = field(default_factory=list)
    next_due_at: float | None = None
    is_buried: bool = False
    now: float = 0.0
    closed_hosts: Mapping[str, float] = field(default_factory=dict)
    # How many jobs may be under way at sources of which more were claimed, so that some have to wait.
    bounds: Mapping[int, int] = field(default_factory=dict)
    rest_s: float = 0.0
    # Jobs whose ends were not looked at, because somebody else keeps their run locked: to be sent again.
    postponed: frozenset[int] = frozenset()


def take_turn(
    db: Database,
    memory: Memory,
    worker: str,
    ends: Sequence[End],
    capacity: Capacity,
    limits: Mapping[int, LaneLimits],
    kept: Sequence[Kept],
) -> Turn:
    """Settle these, keep those, claim what fits."""
    with db.writing() as now:
        is_buried = db.value("is_registered", id=worker) is None
        ledger = Ledger(db, now)
        snapshot_ids = keep_snapshots(db, worker, kept)
        accepted = accept(db, ledger, worker, ends)
        weigh(db, ledger, memory.watch, limits, accepted)
        settle(db, ledger, worker, accepted)
        write_levels(db, memory.watch, accepted)
        next_due = wake_due(db, ledger, memory.floors, now)
        ledger.write_counts()
        ended_runs = advance_runs(db, ledger, now)
        claimed: list[Claimed] = []
        closed_hosts: dict[str, float] = {}
        bounds: dict[int, int] = {}
        if capacity.slots > 0 and not is_buried:
            if db.has_to_let_go:
                ledger.write()
                ledger.now = now = db.let_go()
                # The lock on the worker went with the first half: it may have been buried in between.
                is_buried = db.value("is_registered", id=worker) is None
            lanes: list[Lane] = []
            if not is_buried:
                claimed, lanes = start_work(db, memory, ledger, worker, capacity, limits)
            bounds = {lane.source_id: concurrency_of(lane, now) for lane in lanes if lane.ahead}
            next_due = soonest(next_due, *(opening(lane, now) for lane in lanes))
            closed_hosts = db.json("closed_hosts", now=now) if claimed else {}
        ledger.write()
    # Apart from the turn: it locks jobs of other runs, which come before runs.
    close_after_turn(db, ended_runs)
    return Turn(
        accepted.settled,
        accepted.lost,
        claimed,
        snapshot_ids,
        ended_runs,
        next_due,
        is_buried,
        now,
        closed_hosts,
        bounds,
    )


def start_work(
    db: Database,
    memory: Memory,
    ledger: Ledger,
    worker: str,
    capacity: Capacity,
    limits: Mapping[int, LaneLimits],
) -> tuple[list[Claimed], list[Lane]]:
    """What a worker with this much room starts now, and the lanes that it looked at, as they were before.

    Where something fills the worker, others may have been left out: its next turn begins behind them.

    The explanation of why something does not start takes this very step, and undoes it.
    """
    lanes = LaneReader(db, limits, memory, capacity, worker)
    return claim(db, memory, ledger, worker, capacity, limits, lanes), lanes.seen


def wake_due(db: Database, ledger: Ledger, floors: Floors, now: float) -> float | None:
    """Queue the waiting jobs whose time has come; answer when the next one is due."""
    after = floors.due_after(now)
    due: float | None = db.value("next_due", after=after)
    if due is None or due > now:
        floors.woke_all(now)
        return due
    found = db.json("due", now=now, after=after, limit=WAKE_LIMIT)
    found = [row for row in found if row[1] not in db.avoided]
    ids = [job_id for job_id, _, _, _ in found]
    db.do("wake_if_waiting", now=now, ids=to_json(ids))
    for job_id, run_id, stage, rank in found:
        ledger.moved(run_id, stage, JobState.WAITING, JobState.QUEUED)
        floors.lower_to(run_id, stage, (rank, job_id))
    ledger.journal_jobs(JobDue(), ids, "clock")
    next_due: float | None = db.value("next_due", after=after)
    return next_due
