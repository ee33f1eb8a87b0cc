"""Lanes: each source's queue, what it may start now, and how free slots are shared among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.gates.rates import LONGEST_WAIT_S, places_soon
from penstock.jobs.job import Unit

UNLIMITED = 1 << 30


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """What the configuration allows a source: jobs that touch it at once, post-processing at once."""

    concurrency: int = 4
    candidates: int = 64
    weight: float = 1.0
    rate_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """The queued jobs of one stage of one run; `rank` is that of the first."""

    run_id: int
    stage: str
    unit: Unit
    depth: int
    rank: float = 0.0
    cpu: float = 0.0
    memory_mb: float = 0.0


@dataclass(frozen=True, slots=True)
class Lane:
    """A source with work that could start, as it is at this moment."""

    source_id: int
    heads: tuple[Head, ...]
    limits: LaneLimits = LaneLimits()
    is_paused: bool = False
    cooldown_until: float = 0.0
    running: int = 0
    running_candidates: int = 0
    next_place_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Closed:
    """A gate that holds a lane back; `opens_at` is None when a person or a finished job opens it."""

    gate: str
    opens_at: float | None = None


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many jobs of each kind a lane may start now."""

    pages: int
    candidates: int


def decide(lane: Lane, now: float) -> Allowance | Closed:
    """What this lane may start now, or the gate that holds it back."""
    if lane.is_paused:
        return Closed("paused")
    if lane.cooldown_until > now:
        return Closed("cooldown", lane.cooldown_until)
    pages = max(0, lane.limits.concurrency - lane.running)
    candidates = max(0, lane.limits.candidates - lane.running_candidates)
    if not pages and not candidates:
        return Closed("slots")
    paced = min(pages, _places_soon(lane, now))
    if pages and not paced and not (candidates and _has_candidates(lane)):
        return Closed("rate", lane.next_place_at - LONGEST_WAIT_S)
    return Allowance(paced, candidates)


def _places_soon(lane: Lane, now: float) -> int:
    """How many jobs may start that are likely to send a request.

    A guess, for a job may send none or many: it only spares those the start that would be sent back.
    """
    rate_per_s = lane.limits.rate_per_s
    return UNLIMITED if not rate_per_s else places_soon(lane.next_place_at, rate_per_s, now)


def _has_candidates(lane: Lane) -> bool:
    return any(head.unit == "candidate" for head in lane.heads)


@dataclass(slots=True)
class Budget:
    """What is left of a worker while one claim is shared out."""

    slots: int
    cpu: float
    memory_mb: float

    def fits(self, head: Head) -> int:
        """How many jobs of this stage still fit."""
        count = float(self.slots)
        if head.cpu > 0:
            count = min(count, (self.cpu + 1e-9) / head.cpu)
        if head.memory_mb > 0:
            count = min(count, (self.memory_mb + 1e-9) / head.memory_mb)
        return max(0, int(count))

    def take(self, head: Head, count: int) -> None:
        self.slots -= count
        self.cpu -= head.cpu * count
        self.memory_mb -= head.memory_mb * count


@dataclass(frozen=True, slots=True)
class Grant:
    run_id: int
    stage: str
    count: int


@dataclass(slots=True)
class _Open:
    lane: Lane
    pages: int
    candidates: int
    depth: dict[tuple[int, str], int]
    taken: dict[tuple[int, str], int] = field(default_factory=dict)


class Sharing:
    """Deficit round robin over lanes: a lane's share is its weight, whatever the length of its queue.

    Deficits and the place in the ring live in the worker's memory: losing them costs a moment of
    fairness, never a job.
    """

    def __init__(self) -> None:
        self._deficit: dict[int, float] = {}
        self._after = -1
        self._cut_short: int | None = None
        self._visited: list[_Open] = []

    def share(self, lanes: Iterable[Lane], budget: Budget, now: float) -> list[Grant]:
        """Split what a worker can take among the lanes that may start something."""
        ring = self._ring(lanes, now)
        while budget.slots > 0 and ring:
            ring = self._round(ring, budget)
        return [
            Grant(run_id, stage, count)
            for entry in self._visited
            for (run_id, stage), count in entry.taken.items()
            if count
        ]

    def _ring(self, lanes: Iterable[Lane], now: float) -> list[_Open]:
        opened = []
        for lane in lanes:
            verdict = decide(lane, now)
            if isinstance(verdict, Closed):
                continue
            depth = {(h.run_id, h.stage): h.depth for h in lane.heads}
            opened.append(_Open(lane, verdict.pages, verdict.candidates, depth))
        present = {entry.lane.source_id for entry in opened}
        if self._cut_short not in present:
            self._cut_short = None
        # A lane whose visit was cut short is the first again; otherwise the one after the last.
        last = self._after if self._cut_short is None else self._after - 1
        opened.sort(key=lambda entry: (entry.lane.source_id <= last, entry.lane.source_id))
        self._visited = opened
        self._deficit = {key: value for key, value in self._deficit.items() if key in present}
        return list(opened)

    def _round(self, ring: Sequence[_Open], budget: Budget) -> list[_Open]:
        quantum = max(1.0, budget.slots / sum(entry.lane.limits.weight for entry in ring))
        left = []
        for entry in ring:
            if budget.slots <= 0:
                break
            if self._visit(entry, budget, quantum):
                left.append(entry)
        return left

    def _visit(self, entry: _Open, budget: Budget, quantum: float) -> bool:
        """Serve a lane its share of this round; True if it may have more to start."""
        source_id = entry.lane.source_id
        deficit = self._deficit.get(source_id, 0.0)
        if source_id != self._cut_short:
            deficit += quantum * entry.lane.limits.weight
        wanted = int(deficit)
        served = self._serve(entry, budget, wanted)
        is_cut_short = served < wanted and budget.slots <= 0
        self._after = source_id
        self._cut_short = source_id if is_cut_short else None
        self._deficit[source_id] = deficit - served if served == wanted or is_cut_short else 0.0
        return served == wanted

    def _serve(self, entry: _Open, budget: Budget, wanted: int) -> int:
        served = 0
        for head in sorted(entry.lane.heads, key=lambda h: h.rank):
            if served >= wanted:
                break
            is_candidate = head.unit == "candidate"
            allowed = entry.candidates if is_candidate else entry.pages
            where = (head.run_id, head.stage)
            count = min(wanted - served, allowed, entry.depth[where], budget.fits(head))
            if count <= 0:
                continue
            budget.take(head, count)
            entry.depth[where] -= count
            entry.taken[where] = entry.taken.get(where, 0) + count
            if is_candidate:
                entry.candidates -= count
            else:
                entry.pages -= count
            served += count
        return served


def confirm(grants: Sequence[Grant], lanes: Iterable[Lane], now: float) -> list[Grant]:
    """Cut grants down to what their lanes allow and hold at this moment."""
    opened: dict[int, list[int]] = {}
    heads: dict[tuple[int, str], tuple[Head, int]] = {}
    for lane in lanes:
        verdict = decide(lane, now)
        if isinstance(verdict, Allowance):
            opened[lane.source_id] = [verdict.pages, verdict.candidates]
            heads |= {(head.run_id, head.stage): (head, lane.source_id) for head in lane.heads}
    confirmed = []
    for grant in grants:
        if (grant.run_id, grant.stage) not in heads:
            continue
        head, source_id = heads[grant.run_id, grant.stage]
        kind = 1 if head.unit == "candidate" else 0
        count = min(grant.count, head.depth, opened[source_id][kind])
        if count > 0:
            opened[source_id][kind] -= count
            confirmed.append(Grant(grant.run_id, grant.stage, count))
    return confirmed


def limits_for(source_id: int, limits: Mapping[int, LaneLimits]) -> LaneLimits:
    """A source that is no longer configured still finishes its work, at the default limits."""
    return limits.get(source_id, LaneLimits())
