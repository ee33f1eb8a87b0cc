"""Claiming: which lanes have work, how much of it may start, and taking it, fairly.

How deep a lane is comes from the maintained counters, what is running of it is counted from the rows
that are running: a crash can leave a wrong guess about neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

import msgspec
from msgspec import structs

from penstock.gates.capacity import WARD_DEATHS, Capacity, DrainScope
from penstock.gates.decide import decide
from penstock.gates.fair_shares import LAST, AllLanes, Grant, Room, Stretch, confirm
from penstock.gates.lane import BreakerFacts, Closed, Head, Lane, LaneLimits, Slot, limits_for
from penstock.gates.loaded import Loaded
from penstock.gates.onboarding import Onboarding
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.run_policy import policy_of, slot_of
from penstock.journal.run_events import RunStarted
from penstock.store.database import ALL, Database, to_json
from penstock.store.ledger import Ledger
from penstock.store.rows import Admits
from penstock.store.turn.breaker_watch import begin_tries
from penstock.store.turn.memory import Memory
from penstock.store.turn.watermarks import BEGINNING, Floors


class Queues(Protocol):
    """What is queued, as the claim asks for it: a database has it, and so has a picture of one."""

    @property
    def is_shared(self) -> bool: ...

    def monotonic(self) -> float: ...

    def value(self, name: str, **values: Any) -> Any: ...

    def json(self, name: str, **values: Any) -> Any: ...

    def ready_lanes(
        self,
        floors: Sequence[tuple[int, str, float, int]],
        sources: Sequence[int] | None,
        for_drains: bool,
        stretch: Stretch = ALL,
    ) -> tuple[list[Any], list[Any], int]: ...


class LaneReader:
    """The lanes as a claim reads them: no more of them than it needs. `seen` are those that it has read."""

    def __init__(
        self,
        db: Queues,
        limits: Mapping[int, LaneLimits],
        memory: Memory,
        capacity: Capacity,
        worker: str,
    ) -> None:
        self._db = db
        self._limits = limits
        self._memory = memory
        self._capacity = capacity
        self.seen: list[Lane] = []
        # Suspects are few, and so is what is prepared for drains: these are known as a whole. So is a
        # ring that was no longer than the worker has slots: all of it would be read in two parts.
        self._is_part = capacity.admits == "suspect" or capacity.scope is not None
        self._is_small = self._is_part or memory.ring_length <= capacity.slots
        self._known: AllLanes | None = None
        self._worker = worker
        self._ahead: Mapping[int, int] | None = None

    def read(self, stretch: Stretch) -> tuple[Sequence[Lane], int]:
        if not self._is_small:
            lanes, reached = self._read(stretch)
            # A second part of the ring ends before its beginning, a first one that is all begins there.
            is_whole = reached == stretch.until and (stretch.until < LAST or stretch.after == -1)
            self._memory.ring_length = len(self.seen) if is_whole else LAST
            return lanes, reached
        if self._known is None:
            self._known = AllLanes(self._read(ALL)[0])
            if not self._is_part:
                self._memory.ring_length = len(self.seen)
        return self._known.read(stretch)

    def _read(self, stretch: Stretch) -> tuple[list[Lane], int]:
        capacity = self._capacity
        about = (capacity.admits, None, capacity.loaded, capacity.scope)
        floors = self._memory.floors
        lanes, reached = read_lanes(self._db, self._limits, floors, *about, stretch=stretch)
        if self._ahead is None:
            self._ahead = capacity.ahead if capacity.ahead and self._is_alone() else {}
        if self._ahead:
            lanes = [with_ahead(lane, self._ahead.get(lane.source_id, 0)) for lane in lanes]
        self.seen += lanes
        return lanes, reached

    def _is_alone(self) -> bool:
        """Whether there is no other worker, from whom jobs that wait with this one would be kept.

        That keeps the limits, too: while one worker has more jobs of a lane than may be under way, nobody
        else is given any of it. Asked behind the lanes: if somebody registers after that, what was read is
        not as it was any more, and what was granted is confirmed without anything ahead.
        """
        return not self._db.value("other_workers", id=self._worker)


def with_ahead(lane: Lane, ahead: int) -> Lane:
    """The lane with so many jobs to be claimed beyond its slots, where nothing speaks against it.

    What takes up the worker's ceilings is claimed when it can begin, and a source that is being tried is
    not asked for more than its breaker lets through.
    """
    is_tried = lane.breaker is not None and lane.breaker.state != "closed"
    if not ahead or is_tried or any(head.cpu or head.memory_mb for head in lane.heads):
        return lane
    return structs.replace(lane, ahead=ahead)


def claim(
    db: Database,
    memory: Memory,
    ledger: Ledger,
    worker: str,
    capacity: Capacity,
    limits: Mapping[int, LaneLimits],
    reader: LaneReader,
) -> list[Claimed]:
    """Take what the lanes may start and the worker can hold, fairly."""
    now = ledger.now
    room = Room(capacity.slots, capacity.cpu, capacity.memory_mb)
    grants = memory.sharing.share_read(reader, room, now)
    lanes = reader.seen
    memory.watch.look(lanes)
    if not lanes:
        return []
    has_tried = begin_tries(db, ledger, memory.watch, _granted(lanes, grants))
    if db.is_shared and grants:
        about = (limits, capacity, now)
        grants = _confirmed(db, memory, lanes, grants, *about, has_tried=has_tried)
    picked = pick(db, memory.floors, worker, grants, capacity.admits, capacity.scope)
    if not picked:
        return []
    runs = to_json(sorted(set(picked.values())))
    for run_id, source_id in db.rows("begin_runs", now=now, ids=runs):
        ledger.journal(RunStarted(), source_id, run_id, actor=worker)
    ledger.write_events()
    claimed = db.start(now, worker, list(picked))
    ledger.all_moved(claimed, JobState.QUEUED, JobState.RUNNING)
    return claimed


def _granted(lanes: Sequence[Lane], grants: Sequence[Grant]) -> list[Lane]:
    """The lanes of which something that touches the source is about to start."""
    granted = {(grant.run_id, grant.stage) for grant in grants}
    return [
        lane
        for lane in lanes
        if lane.breaker is not None
        and any((h.run_id, h.stage) in granted for h in lane.heads if h.slot != "candidate")
    ]


def _confirmed(
    db: Database,
    memory: Memory,
    lanes: Sequence[Lane],
    grants: Sequence[Grant],
    limits: Mapping[int, LaneLimits],
    capacity: Capacity,
    now: float,
    *,
    has_tried: bool,
) -> list[Grant]:
    """What was granted on a glance, cut down to what is there once nobody else can take it."""
    source_of = {head.run_id: lane.source_id for lane in lanes for head in lane.heads}
    sources = sorted({source_of[grant.run_id] for grant in grants})
    # One that somebody keeps locked costs itself alone: the rest of the grants goes on.
    free_sources, runs = db.lock_what_is_free(sources, sorted({grant.run_id for grant in grants}))
    free = [
        each for each in grants if each.run_id in runs and source_of[each.run_id] in free_sources
    ]
    if not free or (not has_tried and db.lanes_are_as_read()):
        return free
    locked = sorted({source_of[grant.run_id] for grant in free})
    found = ready_lanes(
        db, limits, memory.floors, capacity.admits, locked, capacity.loaded, capacity.scope
    )
    return confirm(free, found, now)


def ready_lanes(
    db: Queues,
    limits: Mapping[int, LaneLimits],
    floors: Floors,
    admits: Admits = "all",
    sources: Sequence[int] | None = None,
    loaded: Loaded | None = None,
    scope: DrainScope | None = None,
) -> list[Lane]:
    """Every source that has queued jobs in a run that is not paused, with what is running of it."""
    return read_lanes(db, limits, floors, admits, sources, loaded, scope)[0]


def read_lanes(
    db: Queues,
    limits: Mapping[int, LaneLimits],
    floors: Floors,
    admits: Admits = "all",
    sources: Sequence[int] | None = None,
    loaded: Loaded | None = None,
    scope: DrainScope | None = None,
    *,
    stretch: Stretch = ALL,
) -> tuple[list[Lane], int]:
    """The lanes of a stretch in the order of their sources, and the source up to which these are all.

    Only of stages that are `loaded`: what a worker does not know waits for one that does. Runs that are
    prepared for drains are seen by the drains in whose `scope` they are, and by nobody else.
    """
    running: dict[tuple[int, Slot], int] = defaultdict(int)
    heads: dict[int, list[Head]] = defaultdict(list)
    facts: dict[int, _Facts] = {}
    where: dict[str, Any] = {"sources": None if sources is None else to_json(sources)}
    for_drains = scope is not None
    if admits == "suspect":
        rows = db.json("suspect_heads", for_drains=for_drains, **where)
        counts, reached = db.json("running_counts", **where), stretch.until
    else:
        rows, counts, reached = db.ready_lanes(floors.all(), sources, for_drains, stretch)
    for source_id, run_id, stage, unit, depth, rank, cpu, memory_mb, kind, *about in rows:
        if loaded is not None and not loaded.knows(source_id, stage):
            continue
        if scope is not None and not scope.covers(run_id, stage):
            continue
        head = Head(run_id, stage, unit, depth, rank or 0.0, cpu, memory_mb, policy_of(kind).slot)
        heads[source_id].append(head)
        if source_id not in facts:
            facts[source_id] = _facts(*about)
    if not heads:
        return [], reached
    for source_id, unit, kind, count in counts:
        running[source_id, slot_of(unit, kind)] += count
    if admits == "sound":
        # A slot of the lane is left for the ward: a busy lane would otherwise never let a suspect start.
        for source_id, slot in _slots_of_suspects(db, scope):
            running[source_id, slot] += 1
    lanes = [
        Lane(
            source_id,
            tuple(found),
            limits_for(source_id, limits),
            running=running[source_id, "page"] + running[source_id, "background"],
            running_candidates=running[source_id, "candidate"],
            running_background=running[source_id, "background"],
            **facts[source_id],
        )
        for source_id, found in heads.items()
    ]
    # Neither database promises that an aggregate keeps the order of what it is made of.
    lanes.sort(key=lambda lane: lane.source_id)
    return lanes, reached


class _Facts(TypedDict):
    """What holds back a whole lane."""

    is_paused: bool
    cooldown_until: float
    next_place_at: float
    is_held: bool
    breaker: BreakerFacts | None
    level: float | None
    onboarding: Onboarding | None


def _facts(
    is_paused: int,
    cooldown_until: float,
    next_place_at: float | None,
    is_held: int,
    breaker: tuple[str, float, int, float] | None,
    level: float | None,
    onboarding: Sequence[Any] | Onboarding | None,
) -> _Facts:
    return {
        "is_paused": bool(is_paused),
        "cooldown_until": cooldown_until,
        "next_place_at": next_place_at or 0.0,
        "is_held": bool(is_held),
        "breaker": None if breaker is None else BreakerFacts(*breaker),
        "level": level,
        "onboarding": None if onboarding is None else msgspec.convert(onboarding, Onboarding),
    }


def _slots_of_suspects(db: Queues, scope: DrainScope | None) -> set[tuple[int, Slot]]:
    rows = db.json("suspect_heads", sources=None, for_drains=scope is not None)
    return {
        (row[0], slot_of(row[3], row[8]))
        for row in rows
        if scope is None or scope.covers(row[1], row[2])
    }


def opening(lane: Lane, now: float) -> float | None:
    """When a closed lane opens by itself."""
    verdict = decide(lane, now)
    return verdict.opens_at if isinstance(verdict, Closed) else None


def soonest(*times: float | None) -> float | None:
    return min((time for time in times if time is not None), default=None)


def pick(
    db: Queues,
    floors: Floors,
    worker: str,
    grants: Sequence[Grant],
    admits: Admits,
    scope: DrainScope | None = None,
) -> dict[int, int]:
    """What to claim, in rank order within each stage: the job's id and its run's.

    At most one job that killed workers before. Of a `scope` that is a part of a stage, that part.
    """
    ward = _Ward(admits != "sound" and db.value("ward_count", worker=worker) == 0)
    query = "pick_suspects" if admits == "suspect" else "pick"
    began = db.monotonic()
    is_whole = floors.drop_if_old(began)
    picked: dict[int, int] = {}
    short: list[Grant] = []
    for grant, jobs in _look(db, query, floors, grants, ward, scope):
        hidden = floors.of(grant.run_id, grant.stage) != BEGINNING and len(jobs) < grant.count
        picked |= {job_id: grant.run_id for job_id, _, _ in ward.admit(jobs)}
        if hidden:
            short.append(Grant(grant.run_id, grant.stage, grant.count - len(jobs)))
        if jobs and query == "pick":
            job_id, _, rank = jobs[-1]
            floors.raise_to(grant.run_id, grant.stage, (rank, job_id))
    if short and floors.may_look(began):
        # The counter says that there is more: it must have a smaller key than the last one taken.
        is_whole = True
        for grant in short:
            floors.drop(grant.run_id, grant.stage)
        for grant, jobs in _look(db, query, floors, short, ward, scope):
            picked |= {job_id: grant.run_id for job_id, _, _ in ward.admit(jobs)}
    if is_whole:
        floors.looked(began, db.monotonic())
    return picked


def _look(
    db: Queues,
    query: str,
    floors: Floors,
    grants: Sequence[Grant],
    ward: _Ward,
    scope: DrainScope | None,
) -> Iterator[tuple[Grant, list[tuple[int, int, float]]]]:
    """The first jobs of each grant's stage behind its floor: (id, deaths, rank)."""
    part = {"shard": 0, "shards": 1}
    if scope is not None:
        part = {"shard": scope.shard, "shards": scope.shards}
    by_limit: dict[int, list[Grant]] = defaultdict(list)
    for grant in grants:
        # One number for many where it is one for the whole query; else all in one.
        limit = 0 if db.is_shared else 1 << (grant.count - 1).bit_length()
        by_limit[limit].append(grant)
    for limit, group in by_limit.items():
        wanted = [(g.run_id, g.stage, g.count, *floors.of(g.run_id, g.stage)) for g in group]
        about = {"grants": to_json(wanted), "limit": limit, "ward_is_free": ward.is_free}
        found = db.json(query, **about, **part)
        for grant, jobs in zip(group, found, strict=True):
            yield grant, jobs[: grant.count]


@dataclass(slots=True)
class _Ward:
    """A worker's one place for a job that killed workers before."""

    is_free: bool

    def admit(self, jobs: Sequence[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
        admitted = []
        for job in jobs:
            if job[1] >= WARD_DEATHS:
                if not self.is_free:
                    continue
                self.is_free = False
            admitted.append(job)
        return admitted
