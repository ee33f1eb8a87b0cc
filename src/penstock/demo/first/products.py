from selectolax.lexbor import LexborHTMLParser

from penstock import Pipeline

products = Pipeline("products")


@products.step(unit="run")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {"url": url}


@products.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    html = LexborHTMLParser(response.text)
    title, price = html.css_first("title"), html.css_first("[itemprop=price]")
    return {
        "url": page["url"],
        "name": title.text(strip=True) if title else "",
        "price": price.attributes.get("content") if price else None,
    }


@products.step(after="extract", unit="candidate")
def persist(product, ctx):
    ctx.save("product", key=product["url"], data=product)
