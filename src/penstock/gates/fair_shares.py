"""Fair shares: how a worker's free places are split among the lanes that may start something."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.gates.decide import decide
from penstock.gates.lane import Allowance, Closed, Head, Lane, Slot


@dataclass(slots=True)
class Room:
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
    background: int
    depth: dict[tuple[int, str], int]
    taken: dict[tuple[int, str], int] = field(default_factory=dict)

    def allowed(self, slot: Slot) -> int:
        if slot == "candidate":
            return self.candidates
        return min(self.pages, self.background) if slot == "background" else self.pages

    def take(self, slot: Slot, count: int) -> None:
        if slot == "candidate":
            self.candidates -= count
            return
        self.pages -= count
        if slot == "background":
            self.background -= count


class FairShares:
    """Deficit round robin over lanes: a lane's share is its weight, whatever the length of its queue.

    Deficits and the place in the ring live in the worker's memory: losing them costs a moment of
    fairness, never a job.
    """

    def __init__(self) -> None:
        self._deficit: dict[int, float] = {}
        self._after = -1
        self._cut_short: int | None = None
        self._visited: list[_Open] = []

    def share(self, lanes: Iterable[Lane], room: Room, now: float) -> list[Grant]:
        """Split what a worker can take among the lanes that may start something."""
        ring = self._ring(lanes, now)
        while room.slots > 0 and ring:
            ring = self._round(ring, room)
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
            left = (verdict.pages, verdict.candidates, verdict.background)
            opened.append(_Open(lane, *left, depth))
        present = {entry.lane.source_id for entry in opened}
        if self._cut_short not in present:
            self._cut_short = None
        # A lane whose visit was cut short is the first again; otherwise the one after the last.
        last = self._after if self._cut_short is None else self._after - 1
        opened.sort(key=lambda entry: (entry.lane.source_id <= last, entry.lane.source_id))
        self._visited = opened
        self._deficit = {key: value for key, value in self._deficit.items() if key in present}
        return list(opened)

    def _round(self, ring: Sequence[_Open], room: Room) -> list[_Open]:
        quantum = max(1.0, room.slots / sum(entry.lane.limits.weight for entry in ring))
        left = []
        for entry in ring:
            if room.slots <= 0:
                break
            if self._visit(entry, room, quantum):
                left.append(entry)
        return left

    def _visit(self, entry: _Open, room: Room, quantum: float) -> bool:
        """Serve a lane its share of this round; True if it may have more to start."""
        source_id = entry.lane.source_id
        deficit = self._deficit.get(source_id, 0.0)
        if source_id != self._cut_short:
            deficit += quantum * entry.lane.limits.weight
        wanted = int(deficit)
        served = self._serve(entry, room, wanted)
        is_cut_short = served < wanted and room.slots <= 0
        self._after = source_id
        self._cut_short = source_id if is_cut_short else None
        self._deficit[source_id] = deficit - served if served == wanted or is_cut_short else 0.0
        return served == wanted

    def _serve(self, entry: _Open, room: Room, wanted: int) -> int:
        served = 0
        for head in sorted(entry.lane.heads, key=lambda h: h.rank):
            if served >= wanted:
                break
            where = (head.run_id, head.stage)
            allowed = entry.allowed(head.slot)
            count = min(wanted - served, allowed, entry.depth[where], room.fits(head))
            if count <= 0:
                continue
            room.take(head, count)
            entry.depth[where] -= count
            entry.taken[where] = entry.taken.get(where, 0) + count
            entry.take(head.slot, count)
            served += count
        return served


def confirm(grants: Sequence[Grant], lanes: Iterable[Lane], now: float) -> list[Grant]:
    """Cut grants down to what their lanes allow and hold at this moment."""
    opened: dict[tuple[int, str], tuple[Head, _Open]] = {}
    for lane in lanes:
        verdict = decide(lane, now)
        if isinstance(verdict, Allowance):
            entry = _Open(lane, verdict.pages, verdict.candidates, verdict.background, {})
            opened |= {(head.run_id, head.stage): (head, entry) for head in lane.heads}
    confirmed = []
    for grant in grants:
        if (grant.run_id, grant.stage) not in opened:
            continue
        head, entry = opened[grant.run_id, grant.stage]
        count = min(grant.count, head.depth, entry.allowed(head.slot))
        if count > 0:
            entry.take(head.slot, count)
            confirmed.append(Grant(grant.run_id, grant.stage, count))
    return confirmed
