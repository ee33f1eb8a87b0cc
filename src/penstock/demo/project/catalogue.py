"""The shop: product pages found through the sitemap, read from their JSON-LD."""

import json

from selectolax.lexbor import LexborHTMLParser

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
    if not float(product["price"] or 0):
        raise Reject("no price")
    name = " ".join(product["name"].split())
    return {**product, "name": name, "price": round(float(product["price"]), 2)}


@catalogue.step(after="normalize", unit="candidate")
def score(product):
    return {**product, "score": 1.0 if product["in_stock"] else 0.5}


@catalogue.step(after="score", unit="candidate")
def persist(product, ctx):
    ctx.save("product", key=product["sku"], data=product, score=product["score"])


def parse_product(html):
    script = LexborHTMLParser(html).css_first('script[type="application/ld+json"]')
    if script is None:
        raise ValueError("this page has no JSON-LD")
    found = json.loads(script.text())
    offer = found["offers"]
    return {
        "sku": found["sku"],
        "name": found["name"],
        "brand": found.get("brand", {}).get("name"),
        "price": offer.get("price"),
        "currency": offer["priceCurrency"],
        "in_stock": offer["availability"].endswith("/InStock"),
    }
