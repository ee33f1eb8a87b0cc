"""What is measured, at which size, by whom, and what the design asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench import crawls, footprint, on_postgres
from bench.crawls import CONCURRENCY
from bench.rounds import Measured, Side, Workload
from bench.site import Shape
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
from penstock.pipeline.outflow import CHUNK_ITEMS
from penstock.settings import WorkerSettings

OURS = "Penstock"
BARE_SQLITE = "bare apsw"
HUEY = "Huey"
DLT = "dlt"
DLT_DEFAULTS = "dlt, no primary key"
DLT_FILES = "dlt filesystem"
DLT_API = "dlt rest_api, merge"
DLT_API_APPEND = "dlt rest_api, append"
BARE_IMAPCLIENT = "bare imapclient"
PLAYWRIGHT = "plain Playwright, one tab"
MORE_FIELDS = 40
BROWSERS = 50
WATCHED = f"Penstock, {BROWSERS} browsers"

# What Penstock does by default: so many jobs at once, so many children in a transaction.
BATCH, CHUNK = WorkerSettings().slots, CHUNK_ITEMS


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
            Side(HUEY, "bench.peers.huey_queue:drain", _for_huey(scale)),
        ),
        agree=("rows",),
    )


def _for_huey(scale: Scale) -> dict[str, int]:
    # One worker: more of them only wait for each other's lock (2 to 8 were slower).
    return {"jobs": scale.of(5_000, 500), "sources": 50, "workers": 1}


def pages(scale: Scale) -> Workload:
    shape = {"sources": 50, "chunk": CHUNK, "batch": BATCH}
    many = {**shape, "jobs": scale.of(50_000, 20_000)}
    return Workload(
        name="pages",
        title="no-op pages as a user writes them, `penstock run` of 50 sources",
        unit="pages/s",
        sides=(
            Side(OURS, "bench.ours:pages", many),
            Side(BARE_SQLITE, "bench.peers.bare_sqlite:noop", many),
            Side(HUEY, "bench.peers.huey_queue:drain", _for_huey(scale)),
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


def imap(scale: Scale) -> Workload:
    messages = scale.of(20_000, 1_000)
    return Workload(
        name="imap",
        title=f"a mailbox of {messages:,} messages: fetch, parse, persist",
        unit="messages/s",
        sides=(
            Side(OURS, "bench.ours:imap", {}),
            Side(BARE_IMAPCLIENT, "bench.peers.bare_imapclient:read", {}),
        ),
        messages=messages,
        agree=("messages",),
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


def wide_records(scale: Scale) -> Workload:
    """Fifty fields each, two kilobytes of JSON."""
    many = {
        "records": scale.of(100_000, 2_000),
        "more_fields": MORE_FIELDS,
        "has_primary_key": True,
    }
    return Workload(
        name="wide-records",
        title=f"{many['records']:,} records of {10 + MORE_FIELDS} fields (2 KB) saved by key",
        unit="records/s",
        sides=(
            Side(OURS, "bench.ours:records", many, rounds_at_most=3),
            Side(DLT, "bench.peers.dlt_merge:merge", many, rounds_at_most=3),
        ),
    )


def api(scale: Scale) -> Workload:
    size = {"items": scale.of(100_000, 10_000), "concurrency": CONCURRENCY}
    return Workload(
        name="api",
        title=f"{size['items']:,} items of a JSON API, 100 a page",
        unit="items/s",
        sides=(
            Side(OURS, "bench.ours:api", size),
            Side(DLT_API, "bench.peers.dlt_rest_api:load", {**size, "is_merged": True}),
            Side(DLT_API_APPEND, "bench.peers.dlt_rest_api:load", {**size, "is_merged": False}),
        ),
        site=Shape(api_items=size["items"]),
    )


def files(scale: Scale) -> Workload:
    size = {"files": scale.of(10_000, 500), "file_bytes": scale.of(100_000, 20_000)}
    return Workload(
        name="files",
        title=f"{size['files']:,} text files of {size['file_bytes'] // 1000} KB: read, parse, persist",
        unit="files/s",
        sides=(
            Side(OURS, "bench.ours:files", size),
            Side(DLT_FILES, "bench.peers.dlt_filesystem:load", size),
        ),
    )


def headless(scale: Scale) -> Workload:
    pages = scale.of(300, 30)
    size = {"pages": pages, "concurrency": 2}
    return Workload(
        name="headless",
        title=f"{pages} pages opened in chromium",
        unit="pages/s",
        sides=(
            Side(OURS, "bench.ours:headless", size),
            Side(PLAYWRIGHT, "bench.peers.plain_playwright:crawl", size),
        ),
        site=Shape(pages=pages),
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
                queued(backlog),
                "bench.ours:claims",
                {
                    "backlog": backlog,
                    "turns": scale.of(400, 40),
                    "sources": 50,
                    "chunk": 10_000,
                    "slots": 16,
                },
                rounds_at_most=1 if backlog > MILLION else 3,
            )
            for backlog in backlogs(scale)
        ),
    )


def outlook(scale: Scale) -> Workload:
    return Workload(
        name="outlook",
        title=on_postgres.OUTLOOK.format(scale.of(1_000, 100)),
        unit="ms",
        sides=(Side(OURS, "bench.ours:outlook", on_postgres.looks(scale)),),
    )


def dashboard(scale: Scale) -> Workload:
    return on_postgres.dashboard(scale, "dashboard", is_on_postgres=False)


def browsers(scale: Scale) -> Workload:
    size = {"jobs": scale.of(100_000, 5_000), "sources": 50, "chunk": CHUNK}
    return Workload(
        name="browsers",
        title=f"no-op jobs while {BROWSERS} browsers have the dashboard open",
        unit="jobs/s",
        sides=(
            Side(WATCHED, "bench.dashboards:watched", {**size, "browsers": BROWSERS}),
            Side(OURS, "bench.dashboards:watched", {**size, "browsers": 0}),
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
                sources_named(count),
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


def pages_by_sources(scale: Scale) -> Workload:
    return on_postgres.pages_by_sources(scale, "pages-by-sources", is_on_postgres=False)


WORKLOADS: dict[str, Callable[[Scale], Workload]] = {
    "noop": noop,
    "pages": pages,
    "pages-by-sources": pages_by_sources,
    "enqueue": enqueue,
    **crawls.WORKLOADS,
    "imap": imap,
    "records": records,
    "wide-records": wide_records,
    "api": api,
    "files": files,
    "headless": headless,
    "latency": latency,
    **footprint.WORKLOADS,
    "claims": claims,
    "sources": sources,
    "outlook": outlook,
    "dashboard": dashboard,
    "browsers": browsers,
    **on_postgres.WORKLOADS,
}

# The least ratio to each peer, from the design.
RATES: dict[str, tuple[tuple[str, float | None], ...]] = {
    "noop": ((BARE_SQLITE, 0.30), (HUEY, 10.0)),
    "pages": ((BARE_SQLITE, 0.30), (HUEY, 10.0)),
    "enqueue": ((BARE_SQLITE, 0.5),),
    "imap": ((BARE_IMAPCLIENT, 1 / 1.3),),
    "records": ((DLT, 5.0), (DLT_DEFAULTS, 5.0)),
    "wide-records": ((DLT, 3.0),),
    "api": ((DLT_API, 3.0), (DLT_API_APPEND, 3.0)),
    "files": ((DLT_FILES, 3.0),),
    # Within 1.3 times its time.
    "headless": ((PLAYWRIGHT, 0.77),),
}
LATENCY_MS = {"p50_ms": 10.0, "p99_ms": 50.0}


def rows(measured: Measured) -> list[Row]:
    """The lines a workload adds to the table."""
    name = measured.workload.name
    if name in crawls.WORKLOADS:
        return crawls.rows(measured)
    if name in footprint.WORKLOADS:
        return footprint.rows(measured)
    if name in RATES:
        found = [rate_row(measured, OURS, peer, least) for peer, least in RATES[name]]
        return [*found, start_up_row(measured, OURS)] if name == "pages" else found
    if name == "latency":
        return [latency_row(measured, OURS, part, most) for part, most in LATENCY_MS.items()]
    if name == "claims":
        return claim_rows(measured)
    if name == "browsers":
        return [rate_row(measured, WATCHED, OURS, 0.95), _web_row(measured)]
    if name == "pages-by-sources":
        return sources_rows(measured)
    if name == "dashboard":
        return on_postgres.dashboard_rows(measured)
    if name == "outlook":
        return [latency_row(measured, OURS, "p50_ms", on_postgres.OUTLOOK_MS)]
    return on_postgres.rows(measured)


def _web_row(measured: Measured) -> Row:
    """What the server of the dashboard takes of the processor: steadier than the rates."""
    used_ms = measured.median(WATCHED, "web_ms_per_s")
    return Row(
        work=f"processor time of `penstock web` meanwhile, with {BROWSERS} browsers",
        ours=f"{used_ms:.0f} ms a second",
        peer="",
        ratio="",
        target="≤ 50 ms a second",
        is_met=used_ms <= 50.0,
    )


def points(measured: Measured, part: str) -> list[tuple[float, float]]:
    """(size, value) of every side of a workload, for a plot."""
    found: list[tuple[float, float]] = []
    for side in measured.workload.sides:
        size: Any = side.size["backlog" if "backlog" in side.size else "sources"]
        value = measured.rate(side.name) if part == "rate" else measured.median(side.name, part)
        found.append((size, value))
    return found
