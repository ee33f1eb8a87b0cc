"""Feeds: RSS 2.0, RSS 1.0 and Atom become the same six fields."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from penstock.http.failures import FetchError
from penstock.http.feed import Entry, feed_entries
from penstock.http.response import Response
from tests.hostile.evil_xml import EVIL

URL = "https://news.example/feed"
NOON = "2024-05-01T12:00:00+00:00"

RSS2 = """<?xml version="1.0"?>
<rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:atom="http://www.w3.org/2005/Atom" xmlns:content="http://purl.org/rss/1.0/modules/content/">
<channel><title>Not this</title><link>https://news.example/</link>
<item><media:title>Nor this</media:title><title>One &amp; only</title><link>https://news.example/1</link>
<guid isPermaLink="false">tag:1</guid><pubDate>Wed, 01 May 2024 14:00:00 +0200</pubDate>
<description><![CDATA[<p>First</p>]]></description></item>
<item><guid>https://news.example/2</guid><dc:date>2024-05-01T12:00:00Z</dc:date>
<content:encoded>Second</content:encoded></item>
<item><title>Three</title><link>/3</link><pubDate>yesterday</pubDate></item>
<item><link>javascript:alert(1)</link><guid isPermaLink="false">4</guid></item>
</channel></rss>"""

RSS1 = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="https://news.example/"><title>No</title>
<items><rdf:Seq><rdf:li resource="https://news.example/1"/></rdf:Seq></items></channel>
<item rdf:about="urn:1"><title>One</title><link>https://news.example/1</link>
<description>First</description><dc:date>2024-05-01T13:00:00+01:00</dc:date></item></rdf:RDF>"""

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>No</title><link href="https://news.example/"/>
<entry><title>One</title><id>tag:1</id><link rel="self" href="https://news.example/1.atom"/>
<link rel="alternate" href="https://news.example/1"/><updated>2025-01-01T00:00:00Z</updated>
<published>2024-05-01T12:00:00Z</published><summary>First</summary></entry>
<entry><title>Two</title><id>tag:2</id><link href="2"/><updated>2024-05-01T12:00:00Z</updated>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">Sec<b>ond</b></div></content></entry></feed>"""


def entries(body: str | bytes) -> list[Entry]:
    async def get(url: str) -> Response:
        data = body.encode() if isinstance(body, str) else body
        return Response(url, url, 200, {}, data, 0.0)

    async def collect() -> list[Entry]:
        return [entry async for entry in feed_entries(get, URL)]

    return asyncio.run(collect())


def entry(
    number: str,
    title: str | None,
    identity: str,
    summary: str | None,
    updated: str | None = None,
) -> Entry:
    url = f"https://news.example/{number}"
    about = {"title": title, "id": identity, "summary": summary}
    return {"url": url, "published": NOON, "updated": updated, **about}


def test_rss_2_is_read() -> None:
    one, two, three, four = entries(RSS2)
    assert one == entry("1", "One & only", "tag:1", "<p>First</p>")
    assert two == entry("2", None, "https://news.example/2", "Second")
    assert (three["url"], three["id"]) == ("https://news.example/3", "https://news.example/3")
    assert three["published"] is None
    assert (four["url"], four["id"]) == (None, "4")


def test_rss_1_is_read() -> None:
    assert entries(RSS1) == [entry("1", "One", "urn:1", "First")]


def test_atom_is_read() -> None:
    one, two = entries(ATOM)
    assert one == entry("1", "One", "tag:1", "First", "2025-01-01T00:00:00+00:00")
    assert two == entry("2", "Two", "tag:2", "Second", NOON)


def test_an_empty_feed_is_empty() -> None:
    assert entries("<rss><channel/></rss>") == []


@pytest.mark.parametrize("body", ["", "<html/>", "nothing", "<urlset/>", '{"items": []}'])
def test_what_is_no_feed_is_an_error_and_not_an_empty_one(body: str) -> None:
    with pytest.raises(FetchError) as raised:
        entries(body)
    assert (raised.value.kind, raised.value.is_permanent) == ("data", True)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Wed, 01 May 2024 12:00:00 GMT", NOON),
        ("01 May 2024 12:00:00", NOON),
        ("2024-05-01T12:00:00", NOON),
        ("2024-05-01T14:00:00.000+02:00", NOON),
        ("2024-05-01", "2024-05-01T00:00:00+00:00"),
        ("", None),
        ("soon", None),
        ("9999-12-31T23:59:59-23:59", None),
        ("Wed, 99 May 2024 12:00:00 GMT", None),
    ],
)
def test_dates_become_utc_or_nothing(text: str, moment: str | None) -> None:
    [item] = entries(f"<rss><channel><item><pubDate>{text}</pubDate></item></channel></rss>")
    assert item["published"] == moment


@pytest.mark.parametrize("name", sorted(EVIL))
def test_evil_xml_is_refused_at_once(name: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("CANARY")
    body = EVIL[name](secret.as_uri(), "rss", "item", "title")
    began = time.process_time()
    with pytest.raises(FetchError) as raised:
        entries(body)
    assert time.process_time() - began < 1.0
    assert "CANARY" not in str(raised.value)


def test_what_was_updated_last_is_announced_and_a_day_of_publication_is_not() -> None:
    announced: list[tuple[str, str]] = []

    async def collect(body: str) -> None:
        async def get(url: str) -> Response:
            return Response(url, url, 200, {}, body.encode(), 0.0)

        async for _ in feed_entries(get, URL, lambda page, at: announced.append((page, at))):
            pass

    asyncio.run(collect(ATOM))
    asyncio.run(collect(RSS2))
    news = "https://news.example"
    atom = [(f"{news}/1", "2025-01-01T00:00:00Z"), (f"{news}/2", "2024-05-01T12:00:00Z")]
    assert announced == [*atom, *((f"{news}/{n}", "") for n in (1, 2, 3))]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-16", "iso-8859-1", "gb18030", "shift_jis", "koi8-r"]
)
def test_any_encoding_of_the_web_is_read(encoding: str) -> None:
    letter = {"shift_jis": "日", "gb18030": "日", "koi8-r": "я"}.get(encoding, "é")
    text = f'<?xml version="1.0" encoding="{encoding}"?><rss><item><title>{letter}</title></item></rss>'
    [item] = entries(text.encode(encoding))
    assert item["title"] == letter


def test_an_id_or_link_too_long_to_be_one_is_lacking() -> None:
    long = "https://news.example/" + "a" * 10_000
    [item] = entries(
        f"<rss><item><guid>{long}</guid><link>{long}</link><title>x</title></item></rss>"
    )
    assert (item["id"], item["url"], item["title"]) == (None, None, "x")
