"""A pipeline that fetches so many pages of one host, whatever source it is of."""

from __future__ import annotations

PIPELINES = """
from penstock import Pipeline

catalogue = Pipeline("catalogue")


@catalogue.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"url": f"https://{ctx.params['host']}/{ctx.source.key}/{number}"}


@catalogue.step(after="discover", unit="page", key="url", timeout="30s")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    ctx.save("page", key=page["url"], data={"length": len(response.text)})
"""
