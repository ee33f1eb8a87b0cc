"""The connector `feed`: the conformance suite, forty broken feeds, full text and rhythm."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from penstock.connectors.feed import entries
from penstock.connectors.feed.entries import read_entries
from penstock.jobs.failures import BadData
from penstock.testing import RawResponse, Request, answer, journal
from penstock.testing.connectors import ALL_WRITES, ConnectorSuite, Place, Trial
from tests.hostile.costs import growth

SITE = "https://news.example"


class FeedPlace(Place):
    connector = "feed"
    about = {  # noqa: RUF012
        "fetch": {"robots": False, "headers": {"Authorization": "Bearer ${SECRET}"}}
    }
    extra: dict[str, Any] = {}  # noqa: RUF012
    head: dict[str, str] = {}  # noqa: RUF012
    is_locked = False

    def keys(self) -> dict[str, Any]:
        return {"url": f"{SITE}/feed.xml", "rhythm": False, **self.extra}

    def put(self, name: str, text: str) -> bool:
        self.texts[name] = text
        return True

    def remove(self, name: str) -> None:
        del self.texts[name]

    def key(self, name: str) -> str:
        return f"urn:{name}"

    def lock(self) -> bool:
        self.is_locked = True
        return True

    def page(self, request: Request) -> RawResponse:
        if self.is_locked:
            return answer("", status=401)
        if request.url != f"{SITE}/feed.xml":
            name = request.url.rpartition("/")[2]
            return answer(f"<main><p>The whole text of {name}.</p></main>", headers={"ETag": '"1"'})
        items = "".join(
            f"<item><guid>{escape(self.key(name))}</guid><title>{escape(name)}</title>"
            f"<link>{SITE}/pages/{len(name)}</link><description>{escape(text)}</description></item>"
            for name, text in self.texts.items()
        )
        body = f'<rss version="2.0"><channel><title>News</title>{items}</channel></rss>'
        tag = f'"{hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()}"'
        if request.headers.get("If-None-Match") == tag:
            return answer("", status=304)
        about = {"Content-Type": "application/rss+xml", "ETag": tag, **self.head}
        return answer(body.encode("utf-8", "surrogatepass"), headers=about)


class TestFeed(ConnectorSuite):
    place = FeedPlace


@pytest.mark.torture
class TestLongFeed(ConnectorSuite):
    """A feed has at most 10,000 entries."""

    place = FeedPlace
    many, writes = 2_500, ALL_WRITES


def trial_of(folder: Path, head: dict[str, str] | None = None, **keys: Any) -> Trial:
    place = FeedPlace(folder)
    place.extra, place.head = keys, head or {}
    return Trial(folder, place)


def test_full_text_is_that_of_the_pages_and_unchanged_entries_are_not_asked_for(
    tmp_path: Path,
) -> None:
    trial = trial_of(tmp_path, full_text=True)
    trial.place.put("a", "summary of a")
    trial.place.put("bb", "summary of bb")
    trial.run()
    texts = {key: document["text"] for key, document in trial.documents().items()}
    assert texts == {"urn:a": "The whole text of 1.", "urn:bb": "The whole text of 2."}
    trial.place.put("ccc", "summary of ccc")
    trial.place.requests.clear()
    trial.run()
    assert [url for _, url in trial.place.requests] == [f"{SITE}/feed.xml", f"{SITE}/pages/3"]
    assert trial.documents()["urn:ccc"]["meta"]["full_text"] is True


def test_a_feed_is_not_asked_sooner_than_its_rhythm(tmp_path: Path) -> None:
    trial = trial_of(tmp_path, {"Cache-Control": "max-age=7200"}, rhythm=True)
    trial.place.put("a", "text")
    for minutes, requests in ((0, 1), (60, 1), (61, 2)):
        trial.clock.advance(minutes * 60)
        trial.run()
        assert (minutes, len(trial.place.requests)) == (minutes, requests)
    trial.run("full")
    assert len(trial.place.requests) == 3


ITEM = (
    "<item><guid>1</guid><title>One</title><link>/1</link><pubDate>Mon, 02 Nov 2026 08:00:00 GMT</pubDate>"
    "<description>First &lt;b&gt;text&lt;/b&gt;</description></item>"
)
SECOND = (
    "<item><guid>2</guid><title>Two</title><link>/2</link><description>Second</description></item>"
)
RSS = f'<?xml version="1.0"?><rss version="2.0"><channel><title>T</title>{ITEM}{SECOND}</channel></rss>'
ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><entry><id>1</id><title>One</title>'
    '<link rel="self" href="/self"/><link href="/1"/>'
    "<updated>2026-11-02T08:00:00Z</updated><author><name>A</name>"
    '</author><content type="html">First</content></entry><entry><id>2</id><title type="html">Two</title>'
    '<link href="/2"/><summary>Second</summary></entry></feed>'
)
RDF = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><item rdf:about="1"><title>One</title><link>/1</link>'
    "<dc:date>2026-11-02</dc:date></item>"
    '<item rdf:about="2"><title>Two</title><link>/2</link></item></rdf:RDF>'
)
JSON = (
    '{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": 1, "title": "One", "url": "/1"}, '
    '{"id": "2", "title": "Two", "url": "/2", "content_text": "Second"}]}'
)
BROKEN: dict[str, str | bytes] = {
    "rss": RSS,
    "atom": ATOM,
    "rss 1.0": RDF,
    "json": JSON,
    "json with a mark": b"\xef\xbb\xbf" + JSON.encode(),
    "json with junk among items": JSON.replace('"items": [', '"items": [null, 7, '),
    "json without ids": JSON.replace('"id": 1, ', "").replace('"id": "2", ', ""),
    "blank lines first": "\n\n  " + RSS,
    "a mark and blanks": b"\xef\xbb\xbf  " + RSS.encode(),
    "a php warning first": "<br />\n<b>Warning</b>: x in y.php on line 3<br />\n" + RSS,
    "a comment first": "<!-- cached -->" + RSS,
    "junk after it": RSS + "<script>track()</script>",
    "bare ampersands": RSS.replace("First", "Fish & chips &c"),
    "ampersands in links": RSS.replace("/1</link>", "/1?a=1&b=2</link>"),
    "html entities": RSS.replace("First", "caf&eacute;&nbsp;&mdash; &copy;"),
    "unknown entities": RSS.replace("First", "&unknown; &also-not"),
    "references to nothing": RSS.replace("First", "&#0; &#x1F; &#xFFFF; &#999999;"),
    "control characters": RSS.replace("First", "a\x00b\x0bc\x1f"),
    "a document type": RSS.replace(
        "<rss", '<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://x/rss.dtd"><rss', 1
    ),
    "a document type with entities": RSS.replace("<rss", '<!DOCTYPE rss [<!ENTITY a "b">]><rss', 1),
    "latin-1 that says utf-8": RSS.replace("First", "café").encode("latin-1"),
    "latin-1 that says so": RSS.replace('"1.0"', '"1.0" encoding="iso-8859-1"').encode("latin-1"),
    "utf-16": RSS.encode("utf-16"),
    "an encoding that nobody knows": RSS.replace('"1.0"', '"1.0" encoding="klingon"'),
    "two declarations": '<?xml version="1.0"?>' + RSS,
    "cut in the middle": RSS[: RSS.index("</channel>")],
    "cut in a third entry": RSS.replace("</channel></rss>", "<item><title>Thr"),
    "an unclosed tag": RSS.replace("<title>T</title>", "<title>T"),
    "an unclosed entry": RSS.replace(
        "</description></item><item><guid>2", "</description><item><guid>2"
    ),
    "tags that cross": RSS.replace("<title>T</title>", "<b><i>T</b></i>"),
    "html in the description": RSS.replace("First", "<p>First<br>line<img src=x>"),
    "prefixes without a name": RSS.replace(
        "<guid>1", "<media:thumbnail url='x'/><itunes:x>1</itunes:x><guid>1"
    ),
    "no channel": f"<rss>{ITEM}{SECOND}</rss>",
    "no version": RSS.replace(' version="2.0"', ""),
    "capital letters": RSS.replace("pubDate", "PUBDATE").replace(
        "<title>One</title>", "<Title>One</Title>"
    ),
    "dates of all kinds": RSS.replace("Mon, 02 Nov 2026 08:00:00 GMT", "2nd of November"),
    "cdata": RSS.replace("First", "<![CDATA[<p>First & more</p>]]>"),
    "cdata that is not closed in another entry": RSS.replace(
        "</channel>", "<item><title><![CDATA[open</title></item></channel>"
    ),
    "a stylesheet": RSS.replace("<rss", '<?xml-stylesheet href="x.xsl"?><rss', 1),
    "links in attributes": RSS.replace("<link>/1</link>", '<link href="/1"/>'),
    "relative and strange links": RSS.replace("</channel>", "</channel>").replace("/2<", " /2 <"),
    "null bytes after it": RSS.encode() + b"\0" * 100,
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_feeds_give_their_entries(name: str) -> None:
    text = BROKEN[name]
    found = read_entries(
        text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text, SITE + "/"
    )
    assert [entry.title for entry in found.entries][:2] == ["One", "Two"]
    assert all(entry.url.startswith(f"{SITE}/") for entry in found.entries[:2])


def test_there_are_forty_of_them() -> None:
    assert len(BROKEN) >= 40


def test_enclosures_categories_and_authors_are_kept() -> None:
    more = (
        '<enclosure url="/a.mp3" type="audio/mpeg" length="123"/><category>x</category><category>y</category>'
        "<dc:creator>Ann</dc:creator><guid>1</guid>"
    )
    [entry, _] = read_entries(RSS.replace("<guid>1</guid>", more).encode(), SITE + "/").entries
    assert entry.enclosures == [{"url": f"{SITE}/a.mp3", "type": "audio/mpeg", "bytes": 123}]
    assert (entry.categories, entry.author) == (["x", "y"], "Ann")


@pytest.mark.parametrize("text", ["<html><head></head>", "", '{"items": 3}', "{", "plain"])
def test_what_is_no_feed_is_bad_data(text: str) -> None:
    with pytest.raises(BadData):
        read_entries(text.encode(), SITE)


COSTLY: dict[str, Callable[[int], str]] = {
    "ampersands": lambda n: RSS.replace("First", "&" * 5_000 * n),
    "open items": lambda n: "<rss><channel>" + "<item>" * 500 * n,
    "open types": lambda n: "<rss>" + "<!DOCTYPE [" * 500 * n,
    "prefixes": lambda n: "<rss><channel><item>" + "<a:b>" * 1_000 * n,
}


@pytest.mark.parametrize("name", COSTLY)
def test_hostile_feeds_take_time_in_proportion_to_their_length(name: str) -> None:
    def read(times: int) -> None:
        try:
            read_entries(COSTLY[name](times).encode(), SITE)
        except BadData:
            return

    small, large = growth(lambda: read(1), lambda: read(4), rounds=3)
    assert large < 12 * small + 0.02


def rss(count: int) -> bytes:
    items = "".join(f"<item><guid>{n}</guid><title>t</title></item>" for n in range(count))
    return f'<rss version="2.0"><channel>{items}</channel></rss>'.encode()


@pytest.mark.parametrize("form", ["rss", "broken rss", "json"])
def test_a_feed_with_too_many_entries_says_how_many_are_left_out(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "MOST_ENTRIES", 10)
    items = [{"id": str(n), "url": f"{SITE}/{n}"} for n in range(13)]
    body = {
        "rss": rss(13),
        "broken rss": rss(13).replace(b"<title>t</title>", b"<title><b>t</title>", 1),
        "json": json.dumps(
            {"version": "https://jsonfeed.org/version/1.1", "items": items}
        ).encode(),
    }[form]
    found = read_entries(body, SITE)
    assert (len(found.entries), found.cut) == (10, 3)


def test_what_is_cut_of_a_feed_is_an_outcome_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "MOST_ENTRIES", 2)
    trial = trial_of(tmp_path)
    for name in ("a", "b", "c"):
        trial.place.put(name, "text")
    run = trial.run()
    with trial.project() as project:
        [reject] = project.rejects.each()
        noted = [event.detail for event in journal(project) if event.kind == "job.noted"]
    assert reject.reason in noted
    assert (run.state, run.rejected, reject.code) == ("completed", 1, "feed_cut")
    assert reject.reason == "1 entry of the feed left out: it has more than 2 entries"
