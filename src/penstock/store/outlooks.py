"""The outlook of every source, for lists and pages that ask again and again: it only reads.

The code that claims is asked what the next turn would start of a picture of the queues: nothing is locked,
and nobody waits. It agrees with `explain`, which takes that turn and undoes it; only the history of a job or
a run (who held it, what it was put off by) is for `explain` alone to tell.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from penstock.gates.capacity import WARD_DEATHS, Admits, Capacity, DrainScope
from penstock.gates.fair_shares import Room
from penstock.gates.lane import BreakerFacts, Head, Lane, LaneLimits, Slot, limits_for
from penstock.gates.loaded import Loaded
from penstock.gates.onboarding import Onboarding
from penstock.gates.project_terms import outside
from penstock.jobs.job import JobState, Unit
from penstock.jobs.run import RunKind, RunState
from penstock.jobs.run_policy import policy_of, slot_of
from penstock.outlook.outlook import (
    PRETENDED,
    Case,
    NextTurn,
    Outlook,
    Rooms,
    SourceFacts,
    admitting,
    at_its_host,
    outlook_of,
    stops_of,
)
from penstock.outlook.seen_gates import Held, JobStanding, LaneFacts, RunStanding
from penstock.settings.opening_hours import NO_HOURS, OpeningHours
from penstock.store.database import Database, to_json
from penstock.store.noun import Noun
from penstock.store.picture import Picture, QueuedJob, QueuedStage
from penstock.store.rooms import rooms_of
from penstock.store.rows import HoldRow
from penstock.store.sources import Sources
from penstock.store.turn.claim import pick, ready_lanes
from penstock.store.turn.memory import Memory
from penstock.store.turn.watermarks import Floors

# More jobs than that do not become due between two turns.
DUE_LIMIT = 10_000
_KINDS_OF_WAITING = ("outlook_waiting", "outlook_held", "outlook_running")


class _SourceSeen(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What holds back a source as a whole."""

    id: int
    key: str
    paused_at: float | None
    pause_reason: str
    cooldown_until: float
    cooldown_reason: str
    next_place_at: float
    level: float | None
    breaker_state: str | None
    breaker_opens_at: float | None
    breaker_ramp: int | None
    breaker_counts_until: float | None
    breaker_since: float | None
    breaker_reason: str | None
    degraded_at: float | None
    degraded_reason: str | None
    next_run_at: float | None
    onboarding: Onboarding | None

    @property
    def breaker(self) -> tuple[str, float, int, float] | None:
        if self.breaker_state is None:
            return None
        opens_at, counts_until = self.breaker_opens_at or 0.0, self.breaker_counts_until or 0.0
        return (self.breaker_state, opens_at, self.breaker_ramp or 0, counts_until)


class _Queues(msgspec.Struct, array_like=True, frozen=True):
    """What is queued of each stage, and what is running of each source: unit, kind of run, how many."""

    queued: list[QueuedStage]
    running: list[tuple[int, Unit, RunKind, int]]


class _JobSeen(msgspec.Struct, frozen=True, gc=False):
    """A job that can't start yet; `host` is the one whose hours it waits for."""

    id: int
    source_id: int
    run_id: int
    stage: str
    unit: Unit
    state: JobState
    at: float
    due_at: float | None
    worker: str
    deaths: int
    error: str
    host: str
    cpu: float
    memory_mb: float
    kind: RunKind
    run_state: RunState
    run_actor: str
    run_reason: str
    run_at: float
    for_drains: bool = False

    def woken(self, now: float) -> _JobSeen:
        """As the next turn finds it: what is due by now is queued first."""
        if self.due_at is None or self.due_at > now:
            return self
        return msgspec.structs.replace(self, state=JobState.QUEUED, due_at=None, host="")


@dataclass
class _Look:
    """All that was read, and what the next turn of the workers would start of it."""

    now: float
    alive: int
    rooms: Rooms
    sources: list[_SourceSeen]
    holds: list[HoldRow]
    limits: Mapping[int, LaneLimits]
    hours: Mapping[str, OpeningHours]
    picture: Picture
    # The next job of each source: as it is queued, or as it waits.
    queued: dict[int, QueuedStage]
    waiting: dict[int, _JobSeen]
    lanes: dict[Admits, dict[int, Lane]]
    running: dict[tuple[int, Slot], int]

    def __post_init__(self) -> None:
        self.turn = NextTurn(self.now, self.alive, self.rooms)
        self.starting = NextTurn(self.now, self.alive, self.rooms, is_picked=True)
        # As workers that would be given sound jobs see the lanes, and those that would be given suspects.
        sound, suspect = (admitting(deaths, self.rooms) for deaths in (0, WARD_DEATHS))
        self._as_sound = self.lanes.get(sound, {})
        self._as_suspect = self.lanes.get(suspect, {})
        self.held = {
            row.scope: Held(row.scope, row.at, row.actor, row.reason) for row in self.holds
        }

    def lanes_for(self, deaths: int) -> dict[int, Lane]:
        """The lanes as the workers see them that would be given such a job."""
        return self._as_suspect if deaths >= WARD_DEATHS else self._as_sound

    def holds_on(self, key: str) -> tuple[Held, ...]:
        """On everything, and on this source."""
        return tuple(self.held[scope] for scope in ("", key) if scope in self.held)


class Outlooks(Noun):
    """The verbs that say why: of all sources at once, or of one source, run or job."""

    def __init__(self, db: Database, memory: Memory) -> None:
        super().__init__(db)
        self._memory = memory

    def of_sources(
        self,
        limits: Mapping[str, LaneLimits],
        whole: Capacity,
        sources: Sequence[str] | None = None,
        hours: Mapping[str, OpeningHours] = NO_HOURS,
    ) -> list[Outlook]:
        """What stands between each of these sources, or of all, and its next start; in the order of keys.

        Limits are by the keys of sources: whoever only looks makes none of them known.
        """
        with self._db.at_one_moment() as now:
            look = self._read(now, limits, whole, hours)
        self._rehearse_on(look)
        wanted = None if sources is None else set(sources)
        return [
            _outlook(look, each) for each in look.sources if wanted is None or each.key in wanted
        ]

    def _read(
        self,
        now: float,
        limits_by_key: Mapping[str, LaneLimits],
        whole: Capacity,
        hours: Mapping[str, OpeningHours],
    ) -> _Look:
        alive, rooms = rooms_of(self._db, now, whole)
        sources = self._db.decoded("outlook_sources", list[_SourceSeen])
        limits = {each.id: limits_by_key[each.key] for each in sources if each.key in limits_by_key}
        holds = Sources(self._db).holds()
        seen = self._db.decoded("outlook_queues", _Queues)
        stages, jobs = self._with_due(now, seen.queued, sum(max(0, r.slots) for _, r in rooms))
        running: Counter[tuple[int, str, str]] = Counter()
        for source, unit, kind, number in seen.running:
            running[source, unit, kind] += number
        wards = {name: self._ward(name) for name, _ in rooms} if jobs else {}
        picture = Picture(
            self._db.is_shared,
            _lane_rows(sources, holds),
            stages,
            running,
            jobs,
            lambda worker: wards.get(worker, 0),
            max(1, sum(room.slots for _, room in rooms)),
        )
        queued = _next_queued(stages)
        waiting = self._next_waiting(now, sources, queued)
        kinds = {admitting(deaths, rooms) for deaths in ((0, WARD_DEATHS) if jobs else (0,))}
        lanes = {kind: _lanes(picture, limits, kind) for kind in kinds}
        places: dict[tuple[int, Slot], int] = Counter()
        for source, unit, kind, number in seen.running:
            places[source, slot_of(unit, kind)] += number
        return _Look(
            now,
            alive,
            rooms,
            sources,
            holds,
            limits,
            hours,
            picture,
            queued,
            waiting,
            lanes,
            places,
        )

    def _with_due(
        self, now: float, queued: Sequence[QueuedStage], slots: int
    ) -> tuple[dict[tuple[int, str], QueuedStage], dict[tuple[int, str], list[QueuedJob]]]:
        """What is queued, with what is due and the next turn queues."""
        stages = {each.where: each for each in queued}
        due = self._db.decoded("outlook_due", list[QueuedStage], now=now, limit=DUE_LIMIT)
        jobs = self._with_suspects(due, slots)
        for each in due:
            if each.where in stages:
                stages[each.where].add(each)
            else:
                stages[each.where] = each
            if each.where in jobs and each.first is not None:
                rank, job_id, deaths = each.first
                jobs[each.where].append((job_id, deaths, rank))
        for own in jobs.values():
            own.sort(key=lambda job: (job[2], job[0]))
        return stages, jobs

    def _with_suspects(
        self, due: Sequence[QueuedStage], slots: int
    ) -> dict[tuple[int, str], list[QueuedJob]]:
        """The first jobs of each stage that has one under which workers died: each of them counts."""
        stages = {each.where for each in due if each.first and each.first[2] >= WARD_DEATHS}
        if not stages and self._db.value("suspect") is None:
            return {}
        found = self._db.json(
            "outlook_with_suspects", stages=to_json(sorted(stages)), limit=slots + 1
        )
        jobs: dict[tuple[int, str], list[QueuedJob]] = {
            (run_id, stage): [(job_id, deaths, rank) for job_id, deaths, rank in first]
            for run_id, stage, first in found
        }
        return jobs

    def _ward(self, worker: str) -> int:
        return int(self._db.value("ward_count", worker=worker))

    def _next_waiting(
        self, now: float, sources: Sequence[_SourceSeen], queued: Mapping[int, QueuedStage]
    ) -> dict[int, _JobSeen]:
        """Of each source of which nothing could start: what is queued of a run that is stopped, else waits,
        else is held, else runs."""
        ids = {
            source_id: stage.first[1]
            for source_id, stage in queued.items()
            if stage.first is not None and not stage.is_active
        }
        left = {source.id for source in sources if source.id not in queued}
        for query in _KINDS_OF_WAITING:
            if left:
                found = self._db.json(query, now=now, sources=to_json(sorted(left)))
                ids |= dict(found)
                left -= ids.keys()
        if not ids:
            return {}
        seen = self._db.decoded("outlook_jobs", list[_JobSeen], ids=to_json(list(ids.values())))
        return {each.source_id: each.woken(now) for each in seen}

    def _rehearse_on(self, look: _Look) -> None:
        """The next turn of each worker, as the claim would take it."""
        lanes = dict(look.lanes)
        for worker, capacity in look.rooms:
            if capacity.slots <= 0:
                continue
            scope, kind = capacity.scope, capacity.admits
            if scope is None and kind not in lanes:
                lanes[kind] = _lanes(look.picture, look.limits, kind)
            room = Room(capacity.slots, capacity.cpu, capacity.memory_mb)
            seen = (
                lanes[kind]
                if scope is None
                else _lanes(look.picture, look.limits, kind, scope=scope)
            )
            own = _loaded(seen, capacity.loaded)
            grants = copy.deepcopy(self._memory.sharing).share(own, room, look.now)
            picked = pick(look.picture, Floors(), worker, grants, kind, scope)
            changed = sorted(look.picture.start(picked))
            if worker == look.rooms[-1][0]:
                return  # nobody looks after the last
            for each, known in lanes.items():
                kept = {key: lane for key, lane in known.items() if key not in changed}
                lanes[each] = kept | _lanes(look.picture, look.limits, each, changed)


def _lanes(
    picture: Picture,
    limits: Mapping[int, LaneLimits],
    admits: Admits,
    sources: Sequence[int] | None = None,
    scope: DrainScope | None = None,
) -> dict[int, Lane]:
    found = ready_lanes(picture, limits, Floors(), admits, sources, scope=scope)
    return {lane.source_id: lane for lane in found}


def _loaded(lanes: Mapping[int, Lane], loaded: Loaded | None) -> Iterator[Lane]:
    """What is queued of stages that a worker has loaded."""
    for lane in lanes.values():
        heads = lane.heads
        if loaded is not None:
            heads = tuple(head for head in heads if loaded.knows(lane.source_id, head.stage))
        if len(heads) == len(lane.heads):
            yield lane
        elif heads:
            yield msgspec.structs.replace(lane, heads=heads)


def _lane_rows(
    sources: Sequence[_SourceSeen], holds: Sequence[HoldRow]
) -> dict[int, tuple[object, ...]]:
    """What the claim reads of each lane beside its queue."""
    held = {hold.scope for hold in holds}
    return {
        each.id: (
            each.paused_at is not None,
            each.cooldown_until,
            each.next_place_at,
            "" in held or each.key in held,
            each.breaker,
            each.level,
            each.onboarding,
        )
        for each in sources
    }


def _next_queued(stages: Mapping[tuple[int, str], QueuedStage]) -> dict[int, QueuedStage]:
    """The stage of each source whose first job comes first; what could start comes before what could not."""
    found: dict[int, QueuedStage] = {}
    for each in stages.values():
        known = found.get(each.source_id)
        if known is None or _place_of(each) < _place_of(known):
            found[each.source_id] = each
    return found


def _place_of(stage: QueuedStage) -> tuple[bool, bool, tuple[float, int]]:
    return not stage.is_active, stage.for_drains, stage.order


def _outlook(look: _Look, source: _SourceSeen) -> Outlook:
    facts, stage = _facts(look, source), look.queued.get(source.id)
    if stage is not None and stage.is_active:
        return _of_queued(look, facts, stage, source)
    job = look.waiting.get(source.id)
    case = Case(facts) if job is None else _case(facts, job)
    lane = _pretended(look, source, job)
    found = outlook_of(case, lane, look.turn)
    if job is not None and job.host:
        found = at_its_host(found, job.host, look.hours)
    return _with_stops(look, case, lane, found)


def _of_queued(look: _Look, source: SourceFacts, stage: QueuedStage, seen: _SourceSeen) -> Outlook:
    """Of a source that has something that could start: the job that starts, else the first."""
    job_id, deaths = stage.first[1:] if stage.first else (0, 0)
    is_picked = source.id in look.picture.started
    if is_picked:
        where, (job_id, deaths, _) = look.picture.started[source.id]
        stage = look.picture.stages[where]
    run = RunStanding(stage.run_id, stage.run_state, source.key, for_drains=stage.for_drains)
    job = JobStanding(job_id, JobState.QUEUED, look.now)
    case = Case(source, run, job, stage.kind, stage.stage, stage.unit, deaths)
    lane = look.lanes_for(deaths).get(source.id)
    if stage.for_drains:
        lane = _pretended(look, seen, None)
    if is_picked and (look.alive or stage.for_drains):
        about = (look.now, source.key, stage.run_id, job_id)
        found = Outlook(*about, True, "starts", "", None, [])
    else:
        found = outlook_of(case, lane, look.starting if is_picked else look.turn)
    return _with_stops(look, case, lane or _pretended(look, seen, None), found)


def _with_stops(look: _Look, case: Case, lane: Lane, found: Outlook) -> Outlook:
    asks = slot_of(case.unit, case.kind) != "candidate"
    stops = stops_of(case.source, lane, look.now, found.gates if asks else None)
    return msgspec.structs.replace(found, stops=stops) if stops else found


def _facts(look: _Look, source: _SourceSeen) -> SourceFacts:
    lane = LaneFacts(
        source.key,
        look.holds_on(source.key),
        source.paused_at,
        source.pause_reason,
        source.cooldown_reason,
        source.breaker_since,
        source.breaker_reason or "",
    )
    degraded = (source.degraded_at, source.degraded_reason or "")
    return SourceFacts(source.id, lane, *degraded, source.next_run_at)


def _case(source: SourceFacts, job: _JobSeen) -> Case:
    is_refused = source.degraded_at is not None and not policy_of(job.kind).runs_when_degraded
    who = ("", "") if job.run_state is RunState.PAUSED else (job.run_actor, job.run_reason)
    since = None if job.run_state is RunState.PAUSED else job.run_at
    about = (job.run_id, job.run_state, source.key, since, *who, is_refused)
    run = RunStanding(*about, for_drains=job.for_drains)
    reason = outside(job.host) if job.host else job.error
    facts = JobStanding(job.id, job.state, job.at, job.due_at, job.worker, "", reason)
    return Case(source, run, facts, job.kind, job.stage, job.unit, job.deaths)


def _pretended(look: _Look, source: _SourceSeen, job: _JobSeen | None) -> Lane:
    """The lane as it would be, had it a job that could start."""
    head = Head(PRETENDED, "pretended", "page", 1)
    if job is not None:
        head = Head(PRETENDED, "pretended", job.unit, 1, 0.0, job.cpu, job.memory_mb)
    pages = look.running.get((source.id, "page"), 0)
    background = look.running.get((source.id, "background"), 0)
    breaker = source.breaker
    return Lane(
        source.id,
        (head,),
        limits_for(source.id, look.limits),
        is_paused=source.paused_at is not None,
        cooldown_until=source.cooldown_until,
        running=pages + background,
        running_candidates=look.running.get((source.id, "candidate"), 0),
        next_place_at=source.next_place_at,
        running_background=background,
        is_held=bool(look.holds_on(source.key)),
        breaker=None if breaker is None else BreakerFacts(*breaker),
        level=source.level,
        onboarding=source.onboarding,
    )
