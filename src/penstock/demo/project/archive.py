"""The archive: a list of entries and a page for each. That it is away at first is not its business here."""

from catalogue import parse_product
from selectolax.lexbor import LexborHTMLParser

from penstock import Pipeline

archive = Pipeline("archive")


@archive.step(unit="run")
async def discover(ctx):
    listing = await ctx.fetch(ctx.params["entries"])
    for link in LexborHTMLParser(listing.text).css("a.entry"):
        yield {"url": link.attributes["href"]}


@archive.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    return parse_product(response.text)


@archive.step(after="extract", unit="candidate")
def persist(entry, ctx):
    ctx.save("print", key=entry["sku"], data={**entry, "price": float(entry["price"])})
