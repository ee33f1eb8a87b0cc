"""Sitemaps: every page of a site, from XML that may be anything."""

from __future__ import annotations

import asyncio
import gzip
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.http.addresses import MAX_URL
from penstock.http.failures import FetchError, HostClosed
from penstock.http.pace import BURST_S, SHARE, LoopShare
from penstock.http.response import Response
from penstock.http.sitemap import MAX_UNPACKED, sitemap_urls
from penstock.http.xml import MAX_ROW_ELEMENTS, BadXml, Shape, read_rows
from tests.hostile.evil_xml import EVIL

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
TOP = "https://shop.example/sitemap.xml"
SHAPE = Shape(frozenset({"urlset"}), frozenset({"url"}), frozenset({"loc"}))


def urlset(*locations: str) -> bytes:
    return f"<urlset {NS}>{''.join(f'<url><loc>{at}</loc></url>' for at in locations)}</urlset>".encode()


def index(*locations: str) -> bytes:
    entries = "".join(f"<sitemap><loc>{at}</loc></sitemap>" for at in locations)
    return f"<sitemapindex {NS}>{entries}</sitemapindex>".encode()


class Site:
    """The documents of a site, and what was asked for."""

    def __init__(self, documents: dict[str, bytes | FetchError], content_type: str = "") -> None:
        self.documents = documents
        self.content_type = content_type
        self.asked: list[str] = []

    async def get(self, url: str) -> Response:
        self.asked.append(url)
        body = self.documents.get(url, FetchError("status 404", url, 404, True))
        if isinstance(body, FetchError):
            raise body
        return Response(url, url, 200, {"content-type": self.content_type}, body, 0.0)


def walk(
    site: Site, max_urls: int = 1000, max_depth: int = 3
) -> tuple[list[str], Exception | None]:
    """The urls that came, and what ended it."""
    urls: list[str] = []

    async def collect() -> None:
        async for url in sitemap_urls(site.get, TOP, max_urls, max_depth):
            urls.append(url)  # noqa: PERF401 - what came before an error counts

    try:
        asyncio.run(collect())
    except FetchError as error:
        return urls, error
    return urls, None


def test_pages_come_in_the_order_of_the_sitemap() -> None:
    pages = [f"https://shop.example/{n}?a=1&amp;b=2" for n in range(3)]
    urls, error = walk(Site({TOP: urlset(*pages)}))
    assert error is None
    assert urls == [page.replace("&amp;", "&") for page in pages]


def test_only_the_pages_own_location_counts() -> None:
    body = (
        f'<?xml version="1.0"?><urlset {NS} xmlns:i="http://www.google.com/schemas/sitemap-image/1.1">'
        "<!-- c --><url><i:image><i:loc>https://cdn.example/x.png</i:loc></i:image>"
        "<loc>\n https://shop.example/a\n</loc><lastmod>2024</lastmod></url>"
        "<url><loc/></url><url><loc>mailto:a@b.c</loc></url><url><loc>javascript:1</loc></url>"
        "<url><loc>/relative</loc></url><url><loc><![CDATA[https://shop.example/b]]></loc></url></urlset>"
    )
    urls, error = walk(Site({TOP: body.encode()}))
    assert error is None
    assert urls == [f"https://shop.example/{page}" for page in ("a", "relative", "b")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_any_encoding_of_xml_is_read(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>'
    body = (text + urlset("https://shop.example/é").decode()).encode(encoding)
    assert walk(Site({TOP: body})) == (["https://shop.example/é"], None)


def test_an_index_leads_to_its_sitemaps_each_once() -> None:
    site = Site(
        {
            TOP: index("https://shop.example/1.xml", "https://shop.example/2.xml.gz", TOP),
            "https://shop.example/1.xml": urlset("https://shop.example/a"),
            "https://shop.example/2.xml.gz": gzip.compress(urlset("https://shop.example/b")),
        }
    )
    assert walk(site) == (["https://shop.example/a", "https://shop.example/b"], None)
    assert len(site.asked) == 3


def test_a_plain_list_of_urls_is_a_sitemap_too() -> None:
    body = b"\xef\xbb\xbfhttps://shop.example/a\r\n\r\nnonsense\nhttps://shop.example/b"
    urls, error = walk(Site({TOP: body}, "text/plain"))
    assert error is None
    assert urls == ["https://shop.example/a", "https://shop.example/b"]


def test_a_blank_before_the_declaration_is_forgiven() -> None:
    body = b'\n\n <?xml version="1.0"?>' + urlset("https://shop.example/a")
    assert walk(Site({TOP: body})) == (["https://shop.example/a"], None)


@pytest.mark.parametrize(
    "body", [b"", b"   ", b"<html><p>login</p></html>", b"<rss/>", b"not xml", b"{}"]
)
def test_what_is_no_sitemap_is_an_error_and_not_an_empty_one(body: bytes) -> None:
    urls, error = walk(Site({TOP: body}, "text/html"))
    assert urls == []
    assert isinstance(error, FetchError)
    assert (error.kind, error.is_permanent) == ("data", True)


def test_a_sitemap_that_ends_too_soon_gives_what_it_has_and_then_says_so() -> None:
    whole = urlset(*[f"https://shop.example/{n}" for n in range(100)])
    urls, error = walk(Site({TOP: whole[:-200]}))
    assert len(urls) > 90
    assert isinstance(error, FetchError)


def test_one_missing_sitemap_does_not_hide_the_others_but_is_told() -> None:
    site = Site(
        {
            TOP: index("https://shop.example/gone.xml", "https://shop.example/2.xml"),
            "https://shop.example/2.xml": urlset("https://shop.example/b"),
        }
    )
    urls, error = walk(site)
    assert urls == ["https://shop.example/b"]
    assert isinstance(error, FetchError)
    assert error.status == 404


def test_a_passing_trouble_ends_the_walk_at_once() -> None:
    first, second = "https://shop.example/1.xml", "https://shop.example/2.xml"
    site = Site({TOP: index(first, second), first: HostClosed("shop.example", 30)})
    assert isinstance(walk(site)[1], HostClosed)
    assert second not in site.asked


def test_caps_are_loud() -> None:
    pages = [f"https://shop.example/{n}" for n in range(11)]
    urls, error = walk(Site({TOP: urlset(*pages)}), max_urls=10)
    assert len(urls) == 10
    assert error is not None

    deep = {
        f"https://shop.example/{n}.xml": index(f"https://shop.example/{n + 1}.xml")
        for n in range(9)
    }
    site = Site({TOP: index("https://shop.example/0.xml"), **deep})
    assert walk(site)[1] is not None
    assert len(site.asked) == 3


def test_a_packed_bomb_stops_at_the_protocols_limit() -> None:
    body = gzip.compress(b"<urlset>" + b" " * (MAX_UNPACKED + 1), 1) * 3
    tracemalloc.start()
    urls, error = walk(Site({TOP: body}))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert urls == []
    assert "unpacks to more" in str(error)
    assert peak < 20_000_000


def test_a_packed_sitemap_that_is_cut_off_is_told() -> None:
    packed = gzip.compress(urlset(*[f"https://shop.example/{n * 7919}" for n in range(500)]))
    assert isinstance(walk(Site({TOP: packed[:-20]}))[1], FetchError)


def test_a_long_sitemap_is_read_in_little_memory() -> None:
    body = urlset(*[f"https://shop.example/product/{n}" for n in range(8_000)])

    async def count() -> int:
        return len([None async for _ in sitemap_urls(Site({TOP: body}).get, TOP)])

    tracemalloc.start()
    assert asyncio.run(count()) == 8_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_500_000


@pytest.mark.parametrize("name", sorted(EVIL))
def test_evil_xml_is_refused_at_once(name: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("CANARY")
    body = EVIL[name](secret.as_uri(), "urlset", "url", "loc")
    began = time.process_time()
    urls, error = walk(Site({TOP: body}))
    assert time.process_time() - began < 1.0
    assert not any("CANARY" in url for url in urls)
    assert isinstance(error, FetchError)
    assert "CANARY" not in str(error)


def test_a_document_type_is_refused_before_anything_in_it_is_read() -> None:
    with pytest.raises(BadXml, match="document type"):
        list(read_rows([b"<!DOCTYPE ", b"urlset ["], SHAPE))


@pytest.mark.parametrize("is_text", [False, True])
def test_a_location_longer_than_any_url_is_left_out_and_told(is_text: bool) -> None:
    good, long = "https://shop.example/a", "https://shop.example/" + "b" * 100_000
    body = f"{good}\n{long}\n{good}".encode() if is_text else urlset(good, long, good)
    notes: list[str] = []

    async def collect() -> list[str]:
        walked = sitemap_urls(Site({TOP: body}, "text/plain").get, TOP, note=notes.append)
        return [url async for url in walked]

    assert asyncio.run(collect()) == [good, good]
    assert notes == [f"{TOP}: 1 locations longer than {MAX_URL:,} characters left out"]


def test_a_page_with_a_thousand_images_is_read_and_one_with_endless_elements_refused() -> None:
    images = "<i><loc>https://cdn.example/x</loc><title>x</title></i>" * 1000
    body = f"<urlset><url>{images}<loc>https://shop.example/a</loc></url></urlset>"
    assert walk(Site({TOP: body.encode()})) == (["https://shop.example/a"], None)
    endless = body.replace("</urlset>", "<url>" + "<a/>" * (MAX_ROW_ELEMENTS + 1))
    urls, error = walk(Site({TOP: endless.encode()}))
    assert urls == ["https://shop.example/a"]
    assert "elements" in str(error)


@pytest.mark.parametrize(
    "body", [b"<urlset><url>" + b"<i/>" * 19_000 + b"</url>", b"http://" + b"a" * 9_000_000]
)
def test_others_get_the_loop_while_a_document_without_rows_is_read(body: bytes) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def read() -> None:
        beside = asyncio.ensure_future(others())
        with suppress(FetchError):
            async for _ in sitemap_urls(Site({TOP: body}, "text/plain").get, TOP):
                pass
        beside.cancel()

    asyncio.run(read())
    assert turns > 3


def test_long_parsing_leaves_most_of_the_loop_to_others() -> None:
    allowance = LoopShare()
    now = 1000.0
    assert allowance.charge(BURST_S, now) == 0.0, "a sitemap of ordinary length never rests"
    worked = 0.0
    for _ in range(100):
        now += allowance.charge(0.01, now) + 0.01
        worked += 0.01
    assert worked <= (now - 1000.0) * SHARE * 1.05

    now += 3600.0
    assert allowance.charge(BURST_S, now) == 0.0
    assert allowance.charge(0.01, now) > 0.0, "and idle hours are not saved up"
