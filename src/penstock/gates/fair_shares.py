"""Fair shares: how a worker's free places are split among the lanes that may start something."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, Protocol

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


LAST = 2**63 - 1
# So many runs are read at once at least, and so many times as many when that was not enough.
FEWEST = 64
GROWTH = 2


class Stretch(NamedTuple):
    """A part of the ring: the sources behind `after`, up to `until`; about `most` runs of them are enough."""

    after: int = -1
    until: int = LAST
    most: int = LAST


class Lanes(Protocol):
    """Lanes that are read a stretch at a time: nobody looks at more of them than can start something."""

    def read(self, stretch: Stretch) -> tuple[Sequence[Lane], int]:
        """The lanes of a stretch in the order of their sources, and the source up to which these are all."""
        ...


class AllLanes:
    """Lanes that are known already."""

    def __init__(self, lanes: Iterable[Lane]) -> None:
        self._lanes = sorted(lanes, key=lambda lane: lane.source_id)

    def read(self, stretch: Stretch) -> tuple[Sequence[Lane], int]:
        after, until, _ = stretch
        return [lane for lane in self._lanes if after < lane.source_id <= until], until


class FairShares:
    """Deficit round robin over lanes: a lane's share is its weight, whatever the length of its queue.

    Deficits and the place in the ring live in the worker's memory: losing them costs a moment of
    fairness, never a job.
    """

    def __init__(self) -> None:
        self._deficit: dict[int, float] = {}
        self._after = -1
        self._cut_short: int | None = None

    def share(self, lanes: Iterable[Lane], room: Room, now: float) -> list[Grant]:
        """Split what a worker can take among the lanes that may start something."""
        return self.share_read(AllLanes(lanes), room, now)

    def share_read(self, lanes: Lanes, room: Room, now: float) -> list[Grant]:
        """The same of lanes that have not been read yet: no more are than it takes to fill the room."""
        if room.slots <= 0:
            return []
        # A lane whose visit was cut short is the first again; otherwise the one after the last.
        start = self._after if self._cut_short is None else self._after - 1
        ring = _opened(lanes, start, room.slots, now)
        first, weight = _that_fill(ring, room.slots)
        if not first or first[0].lane.source_id != self._cut_short:
            self._cut_short = None
        # Where there are more lanes than slots none gets more than one quantum: the others need not be known.
        quantum = max(1.0, room.slots / weight) if weight else 1.0
        visited, left = [], []
        for entry in chain(first, ring):
            visited.append(entry)
            if self._visit(entry, room, quantum):
                left.append(entry)
            if room.slots <= 0:
                break
        self._forget_the_absent(visited, start, is_whole=room.slots > 0)
        while room.slots > 0 and left:
            left = self._round(left, room)
        return [
            Grant(run_id, stage, count)
            for entry in visited
            for (run_id, stage), count in entry.taken.items()
            if count
        ]

    def _forget_the_absent(self, visited: Sequence[_Open], start: int, *, is_whole: bool) -> None:
        """What a lane has saved up is lost when its turn comes and it has nothing that may start."""
        if not self._deficit:
            return
        present = {entry.lane.source_id for entry in visited}
        last = self._after
        for source_id in list(self._deficit.keys() - present):
            is_behind, is_before = source_id > start, source_id <= last
            is_passed = (is_behind and is_before) if last > start else (is_behind or is_before)
            if is_whole or is_passed:
                del self._deficit[source_id]

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
        kept = deficit - served if served == wanted or is_cut_short else 0.0
        if kept:
            self._deficit[source_id] = kept
        else:
            self._deficit.pop(source_id, None)
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


def _opened(lanes: Lanes, start: int, slots: int, now: float) -> Iterator[_Open]:
    """The lanes that may start something, in the order of the ring: from behind `start` around to it."""
    most = max(FEWEST, slots + slots // 4)
    for after, until in ((start, LAST), (-1, start)):
        reached = after
        while reached < until:
            found, reached = lanes.read(Stretch(reached, until, most))
            most *= GROWTH
            for lane in found:
                verdict = decide(lane, now)
                if isinstance(verdict, Closed):
                    continue
                depth = {(h.run_id, h.stage): h.depth for h in lane.heads}
                left = (verdict.pages, verdict.candidates, verdict.background)
                yield _Open(lane, *left, depth)


def _that_fill(ring: Iterator[_Open], slots: int) -> tuple[list[_Open], float]:
    """The next lanes, until a quantum for each fills the slots; and the weight of all of them."""
    found, weight = [], 0.0
    for entry in ring:
        found.append(entry)
        weight += entry.lane.limits.weight
        if weight >= slots:
            break
    return found, weight


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
