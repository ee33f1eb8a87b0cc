"""What is measured, at which size, by whom, and what the design asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.rounds import Measured, Side, Workload
from penstock.pipeline.outflow import CHUNK_ITEMS
from penstock.settings import WorkerSettings

OURS = "Penstock"
BARE_SQLITE = "bare apsw"
BARE_AIOHTTP = "bare aiohttp, fetching only"
HUEY = "Huey"
SCRAPY = "Scrapy"
SCRAPY_TUNED = "Scrapy, fewer tasks"
DLT = "dlt"
DLT_DEFAULTS = "dlt, no primary key"

CONCURRENCY = 32
# What Penstock does by default: so many jobs at once, so many children in a transaction.
BATCH, CHUNK = WorkerSettings().slots, CHUNK_ITEMS


@dataclass(frozen=True)
class Row:
    """A line of the table. `is_met` is None where the design names no target."""

    work: str
    ours: str
    peer: str
    ratio: str
    target: str
    is_met: bool | None


@dataclass(frozen=True)
class Scale:
    """How much of everything: `--quick` only shows that it runs, `--large` adds the ten million."""

    is_quick: bool = False
    is_large: bool = False

    def of(self, full: int, quick: int) -> int:
        return quick if self.is_quick else full


def noop(scale: Scale) -> Workload:
    shape = {"sources": 50, "chunk": CHUNK, "batch": BATCH}
    many = {**shape, "jobs": scale.of(50_000, 20_000)}
    return Workload(
        name="noop",
        title="no-op jobs, enqueue → claim → settle, 50 sources",
        unit="jobs/s",
        sides=(
            Side(OURS, "bench.ours:noop", many),
            Side(BARE_SQLITE, "bench.peers.bare_sqlite:noop", many),
            # One worker: more of them only wait for each other's lock (2 to 8 were slower).
            Side(
                HUEY,
                "bench.peers.huey_queue:drain",
                {"jobs": scale.of(5_000, 500), "sources": 50, "workers": 1},
            ),
        ),
        agree=("rows",),
    )


def enqueue(scale: Scale) -> Workload:
    size = {"jobs": scale.of(100_000, 10_000), "sources": 50, "chunk": CHUNK}
    return Workload(
        name="enqueue",
        title="bulk enqueue with idempotency keys",
        unit="jobs/s",
        sides=(
            Side(OURS, "bench.ours:enqueue", size),
            Side(BARE_SQLITE, "bench.peers.bare_sqlite:enqueue", size),
        ),
        agree=("rows",),
    )


def site(scale: Scale) -> Workload:
    pages = scale.of(5_000, 500)
    size = {"pages": pages, "concurrency": CONCURRENCY}
    return Workload(
        name="site",
        title=f"{pages:,}-page site: fetch, parse, score, dedupe, persist",
        unit="pages/s",
        sides=(
            Side(OURS, "bench.ours:site", size),
            Side(SCRAPY, "bench.peers.scrapy_crawl:crawl", {**size, "concurrent_items": 100}),
            Side(SCRAPY_TUNED, "bench.peers.scrapy_crawl:crawl", {**size, "concurrent_items": 8}),
            Side(BARE_AIOHTTP, "bench.peers.bare_aiohttp:crawl", size),
        ),
        site_pages=pages,
    )


def records(scale: Scale) -> Workload:
    many = {"records": scale.of(100_000, 5_000), "has_primary_key": True}
    # Its time grows with the square of the table here, so a fifth is in its favour.
    fewer = {"records": scale.of(20_000, 2_000), "has_primary_key": False}
    return Workload(
        name="records",
        title=f"{many['records']:,} records saved by key",
        unit="records/s",
        sides=(
            Side(OURS, "bench.ours:records", many),
            Side(DLT, "bench.peers.dlt_merge:merge", many),
            Side(DLT_DEFAULTS, "bench.peers.dlt_merge:merge", fewer, rounds_at_most=2),
        ),
    )


def latency(scale: Scale) -> Workload:
    size = {"jobs": scale.of(300, 30)}
    return Workload(
        name="latency",
        title="enqueue in one process → start in another, idle system",
        unit="ms",
        sides=(Side(OURS, "bench.ours:latency", size),),
    )


def backlogs(scale: Scale) -> list[int]:
    full = [10_000, 1_000_000] + ([10_000_000] if scale.is_large else [])
    return [1_000, 20_000] if scale.is_quick else full


def claims(scale: Scale) -> Workload:
    return Workload(
        name="claims",
        title="claim latency",
        unit="ms",
        sides=tuple(
            Side(
                _queued(backlog),
                "bench.ours:claims",
                {
                    "backlog": backlog,
                    "turns": scale.of(400, 40),
                    "sources": 50,
                    "chunk": 10_000,
                    "slots": 16,
                },
                rounds_at_most=1 if backlog > 1_000_000 else 3,
            )
            for backlog in backlogs(scale)
        ),
    )


def sources(scale: Scale) -> Workload:
    counts = (1, 10, 50, 200, 1_000) if not scale.is_quick else (1, 10)
    return Workload(
        name="sources",
        title="no-op jobs against the number of sources",
        unit="jobs/s",
        sides=tuple(
            Side(
                f"{count:,} source{'s' if count > 1 else ''}",
                "bench.ours:noop",
                {
                    "jobs": scale.of(50_000, 5_000),
                    "sources": count,
                    "chunk": CHUNK,
                    "batch": BATCH,
                },
                rounds_at_most=3,
            )
            for count in counts
        ),
    )


WORKLOADS: dict[str, Callable[[Scale], Workload]] = {
    "noop": noop,
    "enqueue": enqueue,
    "site": site,
    "records": records,
    "latency": latency,
    "claims": claims,
    "sources": sources,
}

# The least ratio to each peer, from the design.
RATES: dict[str, tuple[tuple[str, float | None], ...]] = {
    "noop": ((BARE_SQLITE, 0.30), (HUEY, 10.0)),
    "enqueue": ((BARE_SQLITE, 0.5),),
    "site": ((SCRAPY, 5.0), (SCRAPY_TUNED, 5.0), (BARE_AIOHTTP, 0.2)),
    "records": ((DLT, 5.0), (DLT_DEFAULTS, 5.0)),
}
LATENCY_MS = {"p50_ms": 10.0, "p99_ms": 50.0}
CLAIM_GROWTH = 1.5
MEMORY_MB = 150.0
MILLION = 1_000_000


def rows(measured: Measured) -> list[Row]:
    """The lines a workload adds to the table."""
    name = measured.workload.name
    if name in RATES:
        return [_rate_row(measured, peer, least) for peer, least in RATES[name]]
    if name == "latency":
        return [_latency_row(measured, part, most) for part, most in LATENCY_MS.items()]
    if name == "claims":
        return _claim_rows(measured)
    return []


def _rate_row(measured: Measured, peer: str, least: float | None) -> Row:
    unit = measured.workload.unit
    ours, theirs = measured.rate(OURS), measured.rate(peer)
    ratio = measured.ratio(OURS, peer)
    return Row(
        work=measured.workload.title,
        ours=f"{ours:,.0f} {unit}",
        peer=f"{peer}: {theirs:,.0f} {unit}",
        ratio=f"{ratio:.2f} ×",
        target="" if least is None else f"≥ {least:g} ×",
        is_met=None if least is None else ratio >= least,
    )


def _latency_row(measured: Measured, part: str, most: float) -> Row:
    ours = measured.median(OURS, part)
    return Row(
        work=f"{measured.workload.title}, {part[:3]}",
        ours=f"{ours:.1f} ms",
        peer="",
        ratio="",
        target=f"≤ {most:g} ms",
        is_met=ours <= most,
    )


def _claim_rows(measured: Measured) -> list[Row]:
    first, *others = [side.name for side in measured.workload.sides]
    found = [
        _growth_row(measured, part, first, other)
        for other in others
        for part in ("p50_ms", "p99_ms")
    ]
    if _queued(MILLION) in measured.results:
        found.append(_memory_row(measured))
    return found


def _growth_row(measured: Measured, part: str, few: str, many: str) -> Row:
    before, after = measured.median(few, part), measured.median(many, part)
    return Row(
        work=f"claim latency {part[:3]}, {few} → {many}",
        ours=f"{after:.2f} ms",
        peer=f"{few}: {before:.2f} ms",
        ratio=f"{after / before:.2f} ×",
        target=f"≤ {CLAIM_GROWTH:g} ×",
        is_met=after / before <= CLAIM_GROWTH,
    )


def _memory_row(measured: Measured) -> Row:
    rss = measured.median(_queued(MILLION), "rss_mb")
    return Row(
        work="memory of the worker with 1 million queued jobs",
        ours=f"{rss:.0f} MB RSS",
        peer="",
        ratio="",
        target=f"≤ {MEMORY_MB:g} MB",
        is_met=rss <= MEMORY_MB,
    )


def _queued(backlog: int) -> str:
    if backlog >= MILLION:
        return f"{backlog // MILLION} million queued"
    return f"{backlog // 1000} thousand queued"


def points(measured: Measured, part: str) -> list[tuple[int, float]]:
    """(size, value) of every side of a workload, for a plot."""
    found: list[tuple[int, float]] = []
    for side in measured.workload.sides:
        size: Any = side.size["backlog" if "backlog" in side.size else "sources"]
        value = measured.rate(side.name) if part == "rate" else measured.median(side.name, part)
        found.append((size, value))
    return found
