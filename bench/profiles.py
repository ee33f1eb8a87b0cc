"""Where the time of a row goes: one more round of our side, with its processes sampled, not counted."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.rounds import SCRATCH, Side, Workload, run_side, surroundings
from bench.sampler import ASKED
from bench.table import Row

SAMPLING = Path(__file__).with_name("sampling")
# Parts below this share say nothing.
LEAST_SHARE = 0.03
THREADS = {"MainThread": "loop"}


@dataclass(frozen=True)
class Profile:
    """Processor time of a side: how much for each thing it did, on how many cores, and whose it was."""

    workload: str
    side: str
    per_unit_us: float | None
    cores: float | None
    parts: tuple[tuple[str, float], ...]

    def cells(self) -> tuple[str, ...]:
        shares = "; ".join(f"{name} {share:.0%}" for name, share in self.parts)
        per_unit = "" if self.per_unit_us is None else f"{self.per_unit_us:,.0f} µs"
        cores = "" if self.cores is None else f"{self.cores:.1f}"
        return (self.workload, self.side, per_unit, cores, shares)


def of_missed(workload: Workload, rows: list[Row], tell: Callable[[str], None]) -> list[Profile]:
    """A profile for each side of ours whose row missed its target."""
    missed = {row.side for row in rows if row.is_met is False and row.side}
    sides = [
        side
        for side in workload.sides
        if side.name in missed and side.call.startswith("bench.ours")
    ]
    return [_profile(workload, side, tell) for side in sides]


def _profile(workload: Workload, side: Side, tell: Callable[[str], None]) -> Profile:
    SCRATCH.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="samples-", dir=SCRATCH) as name,
        surroundings(workload) as (extra, new_store),
        new_store() as store,
    ):
        asked = {ASKED: name}
        result = run_side(side, {**extra, **store}, asked, (SAMPLING,))
        used = _used(Path(name))
    tell(f"{workload.name:10} profiled     {side.name}")
    return profile(workload.name, side.name, used, result.get("done"), result.get("seconds"))


def _used(folder: Path) -> dict[str, float]:
    used: dict[str, float] = defaultdict(float)
    for file in folder.glob("*.json"):
        found = json.loads(file.read_text())
        if found["kind"] != "bench":
            for thread, place, seconds in found["used"]:
                used[f"{found['kind']} {_thread(thread)}: {place}"] += seconds
    return used


def _largest_first(used: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(used.items(), key=lambda part: -part[1])


def _thread(name: str) -> str:
    plain = name.rstrip("0123456789").rstrip("_- ")
    return THREADS.get(plain, plain)


def profile(
    workload: str, side: str, used: dict[str, float], done: float | None, seconds: float | None
) -> Profile:
    total = sum(used.values())
    parts = [(name, spent / total) for name, spent in _largest_first(used)]
    return Profile(
        workload,
        side,
        1e6 * total / done if done else None,
        total / seconds if seconds else None,
        tuple(part for part in parts if part[1] >= LEAST_SHARE),
    )
