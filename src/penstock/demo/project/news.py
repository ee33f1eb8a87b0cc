"""The newspaper: entries of an RSS feed, and the article behind each."""

from selectolax.lexbor import LexborHTMLParser

from penstock import Pipeline, Reject, Skip

news = Pipeline("news")


@news.step(unit="run")
async def discover(ctx):
    async for entry in ctx.feed(ctx.params["feed"]):
        yield {"url": entry["url"], "published": entry["published"]}


@news.step(after="discover", unit="page", key="url", timeout="30s")
async def extract(entry, ctx):
    response = await ctx.fetch(entry["url"])
    article = parse_article(response.text)
    if not article["text"]:
        raise Skip("announced, but not written yet")
    return {**article, "published": entry["published"]}


@news.step(after="extract", unit="candidate")
def judge(article):
    if article["is_sponsored"]:
        raise Reject("an advertisement")
    return {**article, "words": len(article["text"].split())}


@news.step(after="judge", unit="candidate")
def persist(article, ctx):
    ctx.save("article", key=article["url"], data=article)


def parse_article(html):
    page = LexborHTMLParser(html)
    return {
        "url": page.css_first("link[rel=canonical]").attributes["href"],
        "title": page.css_first("h1").text(strip=True),
        "author": page.css_first(".byline").text(strip=True),
        "text": "\n".join(paragraph.text(strip=True) for paragraph in page.css("p.text")),
        "is_sponsored": page.css_first(".sponsored") is not None,
    }
