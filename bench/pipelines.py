"""The pipelines that Penstock runs in the bench, written as a user would write them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from bench import product, records
from penstock import Pipeline

nothing = Pipeline("nothing")


@nothing.step(unit="run")
def begin() -> None:
    """A run has a first step; the jobs of this one are enqueued from outside."""


@nothing.step(after="begin", unit="candidate")
def work(item: dict[str, Any]) -> None:
    """Do nothing."""


empty_pages = Pipeline("empty_pages")


@empty_pages.step(unit="run")
async def enumerate_pages(ctx: Any) -> AsyncIterator[dict[str, Any]]:
    for number in range(ctx.params["pages"]):
        yield {"url": f"https://example.test/{ctx.source.key}/{number}"}


@empty_pages.step(after="enumerate_pages", unit="page", key="url")
async def look(page: dict[str, Any], ctx: Any) -> None:
    """Do nothing."""


crawl = Pipeline("crawl")


@crawl.step(unit="run")
async def discover(ctx: Any) -> AsyncIterator[dict[str, Any]]:
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {"url": url}


@crawl.step(after="discover", unit="page", key="url")
async def extract(page: dict[str, Any], ctx: Any) -> dict[str, Any]:
    response = await ctx.fetch(page["url"])
    return product.parse(response.text)


@crawl.step(after="extract", unit="candidate")
def score(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "score": product.score(found)}


@crawl.step(after="score", unit="candidate")
def persist(found: dict[str, Any], ctx: Any) -> None:
    ctx.save("product", key=found["sku"], data=found, score=found["score"])


load = Pipeline("load")


@load.step(unit="run")
def read(ctx: Any) -> Iterator[dict[str, Any]]:
    which = records.first_load if ctx.params["load"] == "first" else records.second_load
    return which(ctx.params["records"], ctx.params.get("more_fields", 0))


@load.step(after="read", unit="run")
def save(record: dict[str, Any], ctx: Any) -> None:
    ctx.save("product", key=record["sku"], data=record)


series = Pipeline("series")


@series.step(unit="page", windows=True)
async def fetch(ctx: Any) -> AsyncIterator[dict[str, Any]]:
    day = f"{ctx.window.start:%Y-%m-%d}"
    response = await ctx.fetch(ctx.params["prices"], params={"day": day})
    for price in response.json():
        yield price


@series.step(after="fetch", unit="candidate")
def keep(price: dict[str, Any], ctx: Any) -> None:
    ctx.save("price", key=f"{price['symbol']} {price['day']}", data=price)


clock = Pipeline("clock")


@clock.step(unit="run")
def note_the_time(ctx: Any) -> None:
    # The monotonic clock of Linux and macOS is one for all processes.
    ctx.save("start", key=str(ctx.run.id), data={"started_at": time.monotonic()})
