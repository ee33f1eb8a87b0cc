"""The shop's pipeline as it is to be: prices in cents, and nothing that costs more than 180 euros."""

from catalogue import parse_product

from penstock import Pipeline, Reject

catalogue = Pipeline("catalogue")


@catalogue.step(unit="run")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {"url": url}


@catalogue.step(after="discover", unit="page", key="url", timeout="30s")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    yield parse_product(response.text)


@catalogue.step(after="extract", unit="candidate")
def normalize(product):
    price = float(product["price"] or 0)
    if not price:
        raise Reject("no price")
    if price > 180:
        raise Reject("too dear")
    name = " ".join(product["name"].split())
    return {**product, "name": name, "price": round(price * 100)}


@catalogue.step(after="normalize", unit="candidate")
def score(product):
    return {**product, "score": 1.0 if product["in_stock"] else 0.5}


@catalogue.step(after="score", unit="candidate")
def persist(product, ctx):
    ctx.save("product", key=product["sku"], data=product, score=product["score"])
