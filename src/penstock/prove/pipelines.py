"""The pipelines of the scenes, and the sources that they read. Each page is one record."""

from __future__ import annotations

from typing import Any

PAGES = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {"url": url}


@pages.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    yield {"path": response.text}


@pages.step(after="extract", unit="candidate")
def persist(page, ctx):
    ctx.save("page", key=page["path"], data=page)
"""

# How pages fail the first time that they are asked for, and two that do not.
WAYS = ("page", "moved", "dropped", "reset", "half", "hung", "flaky")
BROKEN_WAYS = ("dropped", "reset", "half", "hung", "flaky")
FAILING = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        way = ctx.params["ways"][number % len(ctx.params["ways"])]
        yield {"path": f"/{way}/{number}"}


@pages.step(after="discover", unit="page", key="path")
async def extract(page, ctx):
    await ctx.fetch(ctx.params["site"] + page["path"])
    yield page


@pages.step(after="extract", unit="candidate")
def persist(page, ctx):
    ctx.save("page", key=page["path"], data=page)
"""

GREEDY = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"number": number}


@pages.step(after="discover", unit="page", key="number")
async def fill(page, ctx):
    ctx.save("page", key=str(page["number"]), data={"text": "x" * ctx.params["bytes"]})
"""

# Bounds that nothing meets: they are there so that every request is counted.
COUNTED = {"requests": "1000000000/d"}
# A clock that is set by a day begins another day.
COUNTED_BY_RUN = {"requests": "1000000000/run"}


def source_at(url: str, **more: Any) -> dict[str, Any]:
    """A source on loopback whose requests are counted by a budget."""
    return {
        "pipeline": "steps:pages",
        "budget": COUNTED,
        "breaker": "off",
        "fetch": {"allow_private": True, "robots": False, "timeout": "20s"},
        "params": {"site": url},
        **more,
    }


def sitemap_source(url: str, pages: int, page_ms: int, **more: Any) -> dict[str, Any]:
    """One that reads so many pages of the counting site, each of which takes so long."""
    sitemap = f"{url}/sitemap.xml?n={pages}&page_ms={page_ms}"
    return source_at(url, **{**more, "params": {"sitemap": sitemap}})
