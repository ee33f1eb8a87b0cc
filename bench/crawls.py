"""What is measured on the site: crawls beside Scrapy and bare aiohttp, and what is done again later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.rounds import Measured, Side, Workload
from bench.site import PART, Shape
from bench.table import Row, Scale, figure_row, rate_row

OURS = "Penstock"
BARE_AIOHTTP = "bare aiohttp, fetching only"
SCRAPY = "Scrapy"
SCRAPY_AT_BEST = "Scrapy at its best"
REPLAY, FIRST_TIME = "Penstock, replay", "Penstock, the site row"
BY_LASTMOD, BY_304 = "Penstock, by lastmod", "Penstock, by 304"
BARE_304 = "bare aiohttp, asking only"
QUARTER, ALL = "a quarter of the source's share", "all of the source's share"

CONCURRENCY = 32
HOSTS, CONCURRENCY_OF_EACH = 10, 8
LATENCY_S = 0.05
SITE = "{:,}-page site: fetch, parse, score, dedupe, persist"
# A variant is measured less often than the row that it varies.
ROUNDS = 3

Targets = tuple[tuple[str, float | None], ...]
PLAIN: Targets = ((SCRAPY, 5.0), (SCRAPY_AT_BEST, 3.0), (BARE_AIOHTTP, 0.25))
SECURED: Targets = ((SCRAPY, 5.0), (SCRAPY_AT_BEST, 3.0), (BARE_AIOHTTP, None))
DISTANT: Targets = ((SCRAPY, 5.0), (SCRAPY_AT_BEST, 3.0), (BARE_AIOHTTP, 0.9))


def site(scale: Scale) -> Workload:
    return _crawl(scale, "site", "")


def site_of_ten(scale: Scale) -> Workload:
    return _crawl(scale, "site-10", "", hosts=HOSTS)


def site_tls(scale: Scale) -> Workload:
    return _crawl(scale, "site-tls", "over TLS", is_tls=True)


def site_of_ten_tls(scale: Scale) -> Workload:
    return _crawl(scale, "site-10-tls", "over TLS", hosts=HOSTS, is_tls=True)


def site_distant(scale: Scale) -> Workload:
    return _crawl(scale, "site-50ms", "50 ms away", delay_s=LATENCY_S)


def site_of_ten_distant(scale: Scale) -> Workload:
    return _crawl(scale, "site-10-50ms", "50 ms away", hosts=HOSTS, delay_s=LATENCY_S)


def _crawl(scale: Scale, name: str, how: str, hosts: int = 1, **shape: Any) -> Workload:
    pages = scale.of(5_000, 500)
    concurrency = CONCURRENCY if hosts == 1 else CONCURRENCY_OF_EACH
    size = {"pages": pages, "concurrency": concurrency}
    divided = "" if hosts == 1 else f"{hosts} sources × {concurrency}"
    most = None if name == "site" else ROUNDS
    return Workload(
        name=name,
        title=", ".join(filter(None, (SITE.format(pages), divided, how))),
        unit="pages/s",
        sides=(
            Side(OURS, "bench.ours:site", size, most),
            Side(SCRAPY, "bench.peers.scrapy_crawl:crawl", {**size, "is_at_its_best": False}, most),
            Side(
                SCRAPY_AT_BEST,
                "bench.peers.scrapy_crawl:crawl",
                {**size, "is_at_its_best": True},
                most,
            ),
            Side(BARE_AIOHTTP, "bench.peers.bare_aiohttp:crawl", size, most),
        ),
        site=Shape(pages=pages, hosts=hosts, **shape),
    )


def replay(scale: Scale) -> Workload:
    pages = scale.of(100_000, 500)
    size = {"pages": pages, "concurrency": CONCURRENCY}
    part = {**size, "pages": min(pages, PART), "sitemap": "/sitemap-part.xml"}
    return Workload(
        name="replay",
        title=f"replay of {pages:,} pages from snapshots, offline",
        unit="pages/s",
        sides=(
            Side(REPLAY, "bench.ours_again:replay", size, rounds_at_most=2),
            Side(FIRST_TIME, "bench.ours:site", part, rounds_at_most=2),
        ),
        site=Shape(pages=pages),
    )


def unchanged(scale: Scale) -> Workload:
    pages = scale.of(10_000, 500)
    size = {"pages": pages, "concurrency": CONCURRENCY}
    dated = {**size, "sitemap": "/sitemap-dated.xml", "is_asked": False}
    return Workload(
        name="unchanged",
        title=f"incremental run of {pages:,} pages, nothing changed",
        unit="pages/s",
        sides=(
            Side(BY_LASTMOD, "bench.ours_again:unchanged", dated, rounds_at_most=ROUNDS),
            Side(
                BY_304,
                "bench.ours_again:unchanged",
                {**size, "is_asked": True},
                rounds_at_most=ROUNDS,
            ),
            Side(
                BARE_304,
                "bench.peers.bare_aiohttp:crawl",
                {**size, "asks_for_changes": True},
                rounds_at_most=ROUNDS,
            ),
        ),
        site=Shape(pages=pages, has_tags=True),
    )


def backfill(scale: Scale) -> Workload:
    days = scale.of(4_000, 200)
    size = {"days": days, "concurrency": CONCURRENCY}
    return Workload(
        name="backfill",
        title=f"backfill of {days:,} days, one request and ten records each",
        unit="days/s",
        sides=tuple(
            Side(name, "bench.ours_again:backfill", {**size, "share": share}, rounds_at_most=ROUNDS)
            for name, share in ((QUARTER, 0.25), (ALL, 1.0))
        ),
        site=Shape(days=days),
    )


WORKLOADS: dict[str, Callable[[Scale], Workload]] = {
    "site": site,
    "site-10": site_of_ten,
    "site-tls": site_tls,
    "site-10-tls": site_of_ten_tls,
    "site-50ms": site_distant,
    "site-10-50ms": site_of_ten_distant,
    "replay": replay,
    "unchanged": unchanged,
    "backfill": backfill,
}

# The least ratio to each peer, from the design.
RATES: dict[str, Targets] = {
    "site": PLAIN,
    "site-10": PLAIN,
    "site-tls": SECURED,
    "site-10-tls": SECURED,
    "site-50ms": DISTANT,
    "site-10-50ms": DISTANT,
}
LASTMOD_US = 50.0


def rows(measured: Measured) -> list[Row]:
    """The lines a workload adds to the table."""
    match measured.workload.name:
        case "replay":
            return [rate_row(measured, REPLAY, FIRST_TIME, 2.0)]
        case "unchanged":
            return _unchanged_rows(measured)
        case "backfill":
            return _backfill_rows(measured)
        case name:
            return [rate_row(measured, OURS, peer, least) for peer, least in RATES[name]]


def _unchanged_rows(measured: Measured) -> list[Row]:
    title = measured.workload.title
    took_us = 1e6 / measured.rate(BY_LASTMOD)
    asked_us = 1e6 / measured.rate(BY_304)
    return [
        figure_row(
            f"{title}, by the sitemap's lastmod", took_us, "µs a page", LASTMOD_US, side=BY_LASTMOD
        ),
        figure_row(f"{title}, by 304", asked_us, "µs a page"),
        rate_row(measured, BY_304, BARE_304, None, f"{title}, by 304"),
    ]


def _backfill_rows(measured: Measured) -> list[Row]:
    title = measured.workload.title
    found = [
        figure_row(f"{title}, with {name}", measured.rate(name), "days/s")
        for name in (QUARTER, ALL)
    ]
    again_s = measured.median(ALL, "again_s")
    again = figure_row(f"{title}, again with --missing: the whole command", again_s, "s")
    return [*found, again]
