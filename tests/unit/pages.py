"""A pipeline that fetches an index and so many pages: of the host its source is named after, or of `site`."""

from __future__ import annotations

PIPELINES = """
from penstock import Pipeline

pages = Pipeline("pages")


def address(ctx, path):
    return f"{ctx.params.get('site', f'https://{ctx.source.key}')}/{path}"


@pages.step(unit="run")
async def discover(ctx):
    await ctx.fetch(address(ctx, "index"))
    for number in range(ctx.params["pages"]):
        yield {"n": number}


@pages.step(after="discover", unit="page", key="n")
async def extract(page, ctx):
    response = await ctx.fetch(address(ctx, page["n"]))
    yield {"n": page["n"], "text": response.text}


@pages.step(after="extract", unit="candidate")
def persist(page, ctx):
    ctx.save("page", key=f"{ctx.source.key}/{page['n']}", data=page)
"""
