"""`python -m bench.guard`: is the hot path slower than it was? Five short rows beside those kept last.

Compared are ratios to bare SQLite and bare aiohttp, measured in the same rounds: they say more than
times, which differ with the machine and the hour. guard.json has what was kept last; `--keep` replaces
it. It needs nothing but what Penstock itself needs.

Exit codes: 0 no regression, 1 a row is slower than the tolerance allows, 2 guard.json is missing or
wrong, or a row could not be measured.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec

from bench.rounds import Failed, Measured, Side, Workload, measure
from bench.site import Shape
from penstock.pipeline.outflow import CHUNK_ITEMS
from penstock.settings import WorkerSettings

KEPT = Path(__file__).with_name("guard.json")
HOW_TO_KEEP = "make bench-guard ARGS=--keep, on a quiet machine, writes it"
OURS, BARE = "Penstock", "bare"
ROUNDS = 3
TOLERANCE = 0.15
# Beyond this load for each core the ratios themselves begin to move.
QUIET = 0.3

Ratio = Annotated[float, msgspec.Meta(gt=0)]


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was measured last, by row; a row may be slower by `tolerance` before it counts."""

    measured_on: str
    machine: str
    load: float
    tolerance: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    ratios: dict[str, Ratio]


class WrongFile(Exception):
    """guard.json can't be compared with: why, and what to do."""


@dataclass(frozen=True)
class Line:
    """A row: its ratio to bare now and when it was kept, and what that comes to."""

    row: str
    work: str
    ratio: float
    kept: float
    tolerance: float

    @property
    def change(self) -> float:
        return self.ratio / self.kept - 1

    @property
    def verdict(self) -> str:
        if self.change < -self.tolerance:
            return "SLOWER"
        return "faster" if self.change > self.tolerance else "same"


def workloads() -> list[Workload]:
    """Five short rows: what claims and settles, what walks lanes, what writes, what fetches."""
    batch = {"chunk": CHUNK_ITEMS, "batch": WorkerSettings().slots}
    few = {"jobs": 10_000, "sources": 50, **batch}
    many = {**few, "sources": 1_000}
    site = {"pages": 1_000, "concurrency": 32}
    records = {"records": 20_000, "chunk": CHUNK_ITEMS}
    return [
        _row("pages", "ours:pages", "bare_sqlite:noop", few),
        _row("sources", "ours:pages", "bare_sqlite:noop", many),
        _row("enqueue", "ours:enqueue", "bare_sqlite:enqueue", {**few, "jobs": 50_000}),
        _row("site", "ours:site", "bare_aiohttp:crawl", site, Shape(pages=1_000)),
        _row("records", "ours:records", "bare_upsert:save", records),
    ]


WORK = {
    "pages": "no-op pages, 50 sources",
    "sources": "no-op pages, 1,000 sources",
    "enqueue": "bulk enqueue by key",
    "site": "1,000-page site",
    "records": "20,000 records by key",
}


def _row(
    name: str, ours: str, bare: str, size: dict[str, int], site: Shape | None = None
) -> Workload:
    sides = (Side(OURS, f"bench.{ours}", size), Side(BARE, f"bench.peers.{bare}", size))
    return Workload(name=name, title=WORK[name], unit="a second", sides=sides, site=site)


def read(file: Path) -> Kept:
    """What was kept, for exactly the rows there are."""
    try:
        kept = msgspec.json.decode(file.read_bytes(), type=Kept)
    except FileNotFoundError:
        raise WrongFile(f"{file.name} is missing: {HOW_TO_KEEP}") from None
    except OSError as error:
        raise WrongFile(f"{file.name} can't be read: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise WrongFile(f"{file.name} is wrong: {error}; {HOW_TO_KEEP}") from None
    differ = sorted(kept.ratios.keys() ^ WORK.keys())
    if differ:
        raise WrongFile(f"{file.name} has other rows ({', '.join(differ)}): {HOW_TO_KEEP}")
    return kept


def compared(ratios: dict[str, float], kept: Kept) -> list[Line]:
    return [
        Line(row, WORK[row], ratio, kept.ratios[row], kept.tolerance)
        for row, ratio in ratios.items()
    ]


def table(lines: Iterable[Line], kept: Kept, load: float) -> Iterator[str]:
    """Narrow enough for the body of a commit."""
    yield f"bench-guard: ratios to bare at load {load:.1f}"
    yield f"kept {kept.measured_on} at load {kept.load:.1f}: {kept.machine}"
    yield f"{'':27} {'now':>7} {'kept':>7} {'change':>7}"
    for line in lines:
        yield (
            f"{line.work:27} {line.ratio:7.4f} {line.kept:7.4f} {line.change:+7.0%}  {line.verdict}"
        )
    yield f"SLOWER: by more than {kept.tolerance:.0%}"


def is_regression(lines: Iterable[Line]) -> bool:
    return any(line.verdict == "SLOWER" for line in lines)


def main() -> int:
    asked = _arguments()
    try:
        kept = None if asked.keep else read(KEPT)
        measured = [measure(each, asked.rounds, _tell) for each in workloads()]
    except (WrongFile, Failed) as error:
        print(error, file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    ratios = {each.workload.name: _ratio(each) for each in measured}
    if kept is None:
        _keep(ratios, load)
        kept = read(KEPT)
    lines = compared(ratios, kept)
    print("\n".join(table(lines, kept, load)))
    for when, busy in (("just now", load), ("when these ratios were kept", kept.load)):
        if busy > QUIET * _cores():
            _tell(f"The machine was busy {when}: measure again before you believe it.")
    return int(is_regression(lines))


def _ratio(measured: Measured) -> float:
    return round(measured.ratio(OURS, BARE), 4)


def _keep(ratios: dict[str, float], load: float) -> None:
    kept = Kept(
        measured_on=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=f"{_cores()} cores, Python {sys.version.split()[0]}",
        load=round(load, 1),
        tolerance=TOLERANCE,
        ratios=ratios,
    )
    KEPT.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n")


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.guard",
        description="Compare five short rows of the bench with those that were kept last.",
        epilog="exit codes: 0 no regression, 1 a row is slower, 2 nothing to compare with",
    )
    parser.add_argument("--keep", action="store_true", help="measure, and keep it as the last")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds (default {ROUNDS})")
    asked = parser.parse_args()
    if asked.rounds < 1:
        parser.error("--rounds is at least 1")
    return asked


if __name__ == "__main__":
    sys.exit(main())
