"""The bad neighbour. Nothing here is about failure: tries, waits, quarantine are the engine's."""

from catalogue import parse_product
from selectolax.lexbor import LexborHTMLParser

from penstock import Pipeline

flaky = Pipeline("flaky")


@flaky.step(unit="run")
async def discover(ctx):
    listing = await ctx.fetch(ctx.params["offers"])
    for link in LexborHTMLParser(listing.text).css("a.offer"):
        yield {"url": link.attributes["href"]}


@flaky.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    return parse_product(response.text)


@flaky.step(after="extract", unit="candidate")
def persist(offer, ctx):
    ctx.save("offer", key=offer["sku"], data={**offer, "price": float(offer["price"])})
