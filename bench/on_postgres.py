"""What is measured on Postgres, at which size, by whom, and what is asked for."""

from __future__ import annotations

from collections.abc import Callable

from bench.rounds import Measured, Side, Workload
from bench.table import (
    MILLION,
    Row,
    Scale,
    claim_rows,
    latency_row,
    queued,
    rate_row,
    sources_named,
    sources_rows,
    start_up_row,
)
from penstock.engine.worker.loop import POLL_S
from penstock.pipeline.outflow import CHUNK_ITEMS
from penstock.settings import WorkerSettings

OURS = "Penstock"
OURS_POLLING = "Penstock, polling only"
BARE = "bare SQL"
BARE_JOURNAL = "bare SQL with keys and journal"
PROCRASTINATE = "Procrastinate"
CLEAN, HELD = "nothing held", "snapshot held"

WORKERS = (1, 2, 4)
# What Penstock does by default: so many jobs at once, so many children in a transaction.
BATCH, CHUNK = WorkerSettings().slots, CHUNK_ITEMS


# The least ratio to bare SQL by the number of workers, and that to Procrastinate.
BESIDE_BARE, BESIDE_PROCRASTINATE = {1: 0.4, 2: 0.5, 4: 0.5}, 20.0


def noop(scale: Scale) -> Workload:
    many = _shape(scale)
    return Workload(
        name="pg-noop",
        title="no-op jobs, enqueue → claim → settle, 50 sources",
        unit="jobs/s",
        is_on_postgres=True,
        sides=(
            *(
                Side(_ours(count), "bench.ours_on_postgres:noop", {**many, "workers": count})
                for count in WORKERS
            ),
            *_peers(scale),
        ),
    )


def pages(scale: Scale) -> Workload:
    many = _shape(scale)
    return Workload(
        name="pg-pages",
        title="no-op pages as a user writes them, `penstock run` of 50 sources",
        unit="pages/s",
        is_on_postgres=True,
        sides=(
            *(
                Side(_ours(count), "bench.ours:pages", {**many, "workers": count})
                for count in WORKERS
            ),
            *_peers(scale),
        ),
    )


def _shape(scale: Scale) -> dict[str, int]:
    return {"sources": 50, "chunk": CHUNK, "batch": BATCH, "jobs": scale.of(100_000, 5_000)}


def _peers(scale: Scale) -> tuple[Side, ...]:
    many = _shape(scale)
    return (
        Side(BARE, "bench.peers.bare_postgres:noop", {**many, "has_journal": False}),
        Side(BARE_JOURNAL, "bench.peers.bare_postgres:noop", {**many, "has_journal": True}),
        # 1 to 100 jobs at once and 1 to 4 processes made no clear difference.
        Side(
            PROCRASTINATE,
            "bench.peers.procrastinate_queue:drain",
            {**many, "jobs": scale.of(3_000, 500), "concurrency": 10, "processes": 1},
            rounds_at_most=3,
        ),
    )


def pages_by_sources(
    scale: Scale, name: str = "pg-pages-by-sources", *, is_on_postgres: bool = True
) -> Workload:
    counts = (1, 50, 1_000, 10_000) if not scale.is_quick else (1, 50, 500)
    jobs = scale.of(50_000, 5_000)
    return Workload(
        name=name,
        title="no-op pages as a user writes them",
        unit="pages/s",
        is_on_postgres=is_on_postgres,
        sides=tuple(
            Side(
                sources_named(count),
                "bench.ours:pages",
                {"jobs": jobs, "sources": count},
                # Beyond a minute each on Postgres.
                rounds_at_most=1 if is_on_postgres and count > 1_000 else 3,
            )
            for count in counts
        ),
    )


def _ours(workers: int) -> str:
    return OURS if workers == 1 else f"{OURS}, {workers} workers"


def held(scale: Scale) -> Workload:
    seconds = 180 if scale.is_postgres_long else scale.of(30, 5)
    size = {"seconds": seconds, "sources": 50, "chunk": CHUNK, "depth": 50_000}
    return Workload(
        name="pg-held",
        title=f"no-op jobs while a snapshot is held for {seconds} s",
        unit="jobs/s",
        is_on_postgres=True,
        sides=tuple(
            Side(
                name,
                "bench.ours_on_postgres:held",
                {**size, "is_held": name == HELD},
                rounds_at_most=2,
            )
            for name in (CLEAN, HELD)
        ),
    )


def latency(scale: Scale) -> Workload:
    size = {"jobs": scale.of(300, 30)}
    fewer = {"jobs": scale.of(60, 5), "pause_s": (0.03, 0.03 + POLL_S)}
    return Workload(
        name="pg-latency",
        title="enqueue in one process → start in another, idle system",
        unit="ms",
        is_on_postgres=True,
        sides=(
            Side(OURS, "bench.ours:latency", {**size, "notifies": True}),
            # It waits for most of a second each time.
            Side(
                OURS_POLLING, "bench.ours:latency", {**fewer, "notifies": False}, rounds_at_most=3
            ),
        ),
    )


def claims(scale: Scale) -> Workload:
    backlogs = [1_000, 20_000] if scale.is_quick else [10_000, MILLION]
    size = {"turns": scale.of(400, 40), "sources": 50, "chunk": 10_000, "slots": 16}
    return Workload(
        name="pg-claims",
        title="claim latency",
        unit="ms",
        is_on_postgres=True,
        sides=tuple(
            Side(
                queued(backlog),
                "bench.ours:claims",
                {**size, "backlog": backlog},
                rounds_at_most=3,
            )
            for backlog in backlogs
        ),
    )


OUTLOOK = "outlook of {:,} sources with jobs queued"
OUTLOOK_MS = 50.0


def looks(scale: Scale) -> dict[str, int]:
    return {
        "sources": scale.of(1_000, 100),
        "jobs": scale.of(10_000, 1_000),
        "looks": scale.of(100, 20),
    }


def outlook(scale: Scale) -> Workload:
    return Workload(
        name="pg-outlook",
        title=OUTLOOK.format(scale.of(1_000, 100)),
        unit="ms",
        is_on_postgres=True,
        sides=(Side(OURS, "bench.ours:outlook", {**looks(scale)}),),
    )


DASHBOARD = "dashboard page with {:,} finished jobs and {:,} sources"
DASHBOARD_MS = 150.0


def seen(scale: Scale) -> dict[str, int]:
    return {
        "sources": scale.of(1_000, 50),
        "jobs": scale.of(10_000_000, 5_000),
        "looks": scale.of(30, 5),
    }


def dashboard(scale: Scale, name: str = "pg-dashboard", *, is_on_postgres: bool = True) -> Workload:
    size = seen(scale)
    return Workload(
        name=name,
        title=DASHBOARD.format(size["jobs"], size["sources"]),
        unit="ms",
        is_on_postgres=is_on_postgres,
        sides=(Side(OURS, "bench.dashboards:pages", {**size}, rounds_at_most=1),),
    )


def dashboard_rows(measured: Measured) -> list[Row]:
    """A line for each page, the slowest first."""
    [result] = measured.results[OURS]
    slowest_first = sorted(result["points"].items(), key=lambda point: -point[1])
    return [
        Row(
            work=f"{measured.workload.title}: `{path}`, p50",
            ours=f"{found:.1f} ms",
            peer="",
            ratio="",
            target=f"≤ {DASHBOARD_MS:g} ms",
            is_met=found <= DASHBOARD_MS,
        )
        for path, found in slowest_first
    ]


WORKLOADS: dict[str, Callable[[Scale], Workload]] = {
    "pg-noop": noop,
    "pg-pages": pages,
    "pg-pages-by-sources": pages_by_sources,
    "pg-held": held,
    "pg-latency": latency,
    "pg-claims": claims,
    "pg-outlook": outlook,
    "pg-dashboard": dashboard,
}

LATENCY_MS = {
    OURS: {"p50_ms": 10.0, "p99_ms": 50.0},
    # Found at the latest when it is looked for again, and started within the time of any other start.
    OURS_POLLING: {"p50_ms": POLL_S * 1000, "p99_ms": POLL_S * 1000 + 50.0},
}


def rows(measured: Measured) -> list[Row]:
    """The lines a workload adds to the table."""
    match measured.workload.name:
        case "pg-noop":
            return _beside_peers(measured)
        case "pg-pages":
            return [*_beside_peers(measured), start_up_row(measured, OURS)]
        case "pg-pages-by-sources":
            return sources_rows(measured)
        case "pg-held":
            return _held_rows(measured)
        case "pg-latency":
            return [
                latency_row(measured, side, part, most, f"{measured.workload.title}, {how}")
                for side, how in ((OURS, "NOTIFY"), (OURS_POLLING, "polling only"))
                for part, most in LATENCY_MS[side].items()
            ]
        case "pg-claims":
            return claim_rows(measured)
        case "pg-dashboard":
            return dashboard_rows(measured)
        case "pg-outlook":
            return [latency_row(measured, OURS, "p50_ms", OUTLOOK_MS)]
    return []


def _beside_peers(measured: Measured) -> list[Row]:
    found = []
    for count in WORKERS:
        work = measured.workload.title + ("" if count == 1 else f", {count} worker processes")
        found += [
            rate_row(measured, _ours(count), BARE, BESIDE_BARE[count], work),
            rate_row(measured, _ours(count), BARE_JOURNAL, None, work),
            rate_row(measured, _ours(count), PROCRASTINATE, BESIDE_PROCRASTINATE, work),
        ]
        if count > 1:
            found.append(rate_row(measured, _ours(count), OURS, None, work))
    return found


def _held_rows(measured: Measured) -> list[Row]:
    title = measured.workload.title
    whole = rate_row(measured, HELD, CLEAN, 0.8, f"{title}, all of the time")
    before, after = (measured.median(side, "late_rate") for side in (CLEAN, HELD))
    late = Row(
        work=f"{title}, last quarter of the time",
        ours=f"{after:,.0f} jobs/s",
        peer=f"{CLEAN}: {before:,.0f} jobs/s",
        ratio=f"{after / before:.2f} ×",
        target="≥ 0.8 ×",
        is_met=after / before >= 0.8,
    )
    return [whole, late]


def rates_over_time(measured: Measured) -> dict[str, list[tuple[float, float]]]:
    """(second, jobs a second) of the last round of each side, in steps of a thirtieth of the time."""
    found = {}
    for side in measured.workload.sides:
        step_s = side.size["seconds"] / 30
        points = measured.results[side.name][-1]["points"]
        found[side.name] = _differences(points, step_s)
    return found


def _differences(points: list[list[float]], step_s: float) -> list[tuple[float, float]]:
    rates, (then, before) = [], points[0]
    for now, done in points[1:]:
        if now - then >= step_s:
            rates.append((now, (done - before) / (now - then)))
            then, before = now, done
    return rates
