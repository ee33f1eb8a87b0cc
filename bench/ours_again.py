"""Penstock's side where work is done again or later: replays, incremental runs, backfills."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench import commands, site
from bench.ours import crawled
from bench.projects import GUARDED, RATE, write
from penstock import Project

# What a run asks for beside its pages: robots.txt and the sitemap, once more if it likes.
FEW_REQUESTS = 10


def replay(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Crawl the site, uncounted, then process its pages again from their snapshots."""
    [run] = crawled(size, folder).runs
    before = site.requests_at(size["origin"])
    worked = commands.work(folder, "replay", str(run.id))
    asked = site.requests_at(size["origin"]) - before
    done = worked.total("pages_done")
    if asked or done != size["pages"]:
        raise ValueError(f"{done} of {size['pages']} pages were replayed, {asked} were asked for")
    return {"seconds": worked.seconds, "done": done}


def unchanged(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Crawl the site, uncounted, then look incrementally for what has changed: nothing has."""
    crawled(size, folder)
    before = site.requests_at(size["origin"])
    worked = commands.work(folder, "run", "--all", "--kind", "incremental")
    asked = site.requests_at(size["origin"]) - before
    found = worked.total("pages_unchanged")
    expected = size["pages"] if size["is_asked"] else 0
    if found != size["pages"] or not expected <= asked <= expected + FEW_REQUESTS:
        raise ValueError(f"{found} of {size['pages']} pages were unchanged, {asked} were asked for")
    return {"seconds": worked.seconds, "done": found}


def backfill(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Fetch so many days of a series, one request and a few records each; then ask what is missing."""
    source = {
        "pipeline": "bench.pipelines:series",
        "params": {"prices": size["origin"] + "/prices"},
        "limits": {"concurrency": size["concurrency"], "rate": RATE, "adaptive": True},
        "fetch": {"allow_private": True},
        "backfill": {"window": "1d", "share": size["share"]},
        **GUARDED,
    }
    write(folder, {"prices.test": source}, {})
    last = site.FIRST_DAY + timedelta(days=size["days"] - 1)
    span = ("--from", site.FIRST_DAY.isoformat(), "--to", last.isoformat(), "--yes")
    worked = commands.work(folder, "backfill", "prices.test", *span)
    _insist_on_prices(folder, size["days"])
    before, began = site.requests_at(size["origin"]), time.time()
    again_s = commands.run(folder, "backfill", "prices.test", *span, "--missing") - began
    if site.requests_at(size["origin"]) != before:
        raise ValueError("days that were there have been fetched again")
    return {"seconds": worked.seconds, "done": size["days"], "again_s": again_s}


def _insist_on_prices(folder: Path, days: int) -> None:
    with Project.load(folder) as project:
        saved = sum(1 for _ in project.records.each("price"))
    if saved != days * site.DAY_PRICES:
        raise ValueError(f"{saved} prices of {days} days were saved")
