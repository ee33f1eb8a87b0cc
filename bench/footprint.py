"""What it costs to be there: a worker's memory as everything grows, and the time to the first request."""

from __future__ import annotations

from collections.abc import Callable

from bench.rounds import Measured, Side, Workload
from bench.site import Shape
from bench.table import MEMORY_MB, Row, Scale, figure_row

MANY_QUEUED, MANY_SOURCES, MANY_FINISHED = "queue", "sources", "everything"
NEW, KNOWN, SCRAPY = "new project", "project that has run before", "Scrapy"
COLD_START_MS = 500.0
START = "cold start, `penstock run` → first request out"


def memory(scale: Scale) -> Workload:
    """A long queue; the same of many sources; the same with many finished jobs: all there is at once."""
    size = {
        "queued": scale.of(1_000_000, 4_000),
        "settled": scale.of(50_000, 1_000),
        "sources": 50,
        "finished": 0,
    }
    many = {**size, "sources": scale.of(10_000, 100)}
    everything = {**many, "finished": scale.of(10_000_000, 4_000)}
    return Workload(
        name="memory",
        title="memory of the worker of `penstock up`",
        unit="MB",
        sides=tuple(
            Side(name, "bench.ours_footprint:memory", each, rounds_at_most=1)
            for name, each in (
                (MANY_QUEUED, size),
                (MANY_SOURCES, many),
                (MANY_FINISHED, everything),
            )
        ),
    )


def cold_start(scale: Scale) -> Workload:
    size = {"starts": scale.of(11, 2), "concurrency": 4, "pages": 10}
    ours = "bench.ours_footprint:cold_start"
    return Workload(
        name="cold-start",
        title=START,
        unit="ms",
        sides=(
            Side(NEW, ours, {**size, "is_new": True}, rounds_at_most=2),
            Side(KNOWN, ours, {**size, "is_new": False}, rounds_at_most=2),
            Side(
                SCRAPY,
                "bench.peers.scrapy_crawl:cold_start",
                {**size, "is_at_its_best": False},
                rounds_at_most=2,
            ),
        ),
        site=Shape(pages=10),
    )


WORKLOADS: dict[str, Callable[[Scale], Workload]] = {"memory": memory, "cold-start": cold_start}


def rows(measured: Measured) -> list[Row]:
    """The lines a workload adds to the table."""
    if measured.workload.name == "memory":
        return [_memory_row(measured, side) for side in measured.workload.sides]
    theirs = measured.median(SCRAPY, "p50_ms")
    return [
        figure_row(
            f"{START}, {name}, p50",
            measured.median(name, "p50_ms"),
            "ms",
            COLD_START_MS,
            f"Scrapy: {theirs:,.0f} ms",
            name,
        )
        for name in (NEW, KNOWN)
    ]


def _memory_row(measured: Measured, side: Side) -> Row:
    size, supervisor = side.size, measured.median(side.name, "supervisor_mb")
    finished = f", {size['finished']:,} finished" if size["finished"] else ""
    return figure_row(
        f"{measured.workload.title}: {size['queued']:,} jobs queued in {size['sources']:,} sources{finished}",
        measured.median(side.name, "rss_mb"),
        "MB RSS",
        MEMORY_MB,
        f"its supervisor: {supervisor:.0f} MB",
    )
