"""Sitemaps: the list of pages a site publishes of itself."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from urllib.parse import urljoin

from penstock.counting import count
from penstock.http.addresses import MAX_URL
from penstock.http.encoding import BrokenCoding, Inflater
from penstock.http.failures import FetchError, safe_url
from penstock.http.lastmod import LONGEST
from penstock.http.pace import paced
from penstock.http.response import Response
from penstock.http.xml import SLICE, BadXml, Row, Shape, local_name, read_rows

Get = Callable[[str], Awaitable[Response]]
Announce = Callable[[str, str], None]
# Whether a page or a sitemap (its URL) may be listed by this one (its URL).
IsOnSite = Callable[[str, str], bool]
Note = Callable[[str], None]
# `url` or `sitemap`, location, last change.
Entry = tuple[str, str, str]

MAX_URLS = 5_000_000
MAX_DEPTH = 3
MAX_SITEMAPS = 50_000
# Of the addresses of all sitemaps of a walk: they are held until it has ended.
MAX_LISTED = 16_000_000
# So many of the other sites that entries lead to are named.
MAX_NAMED = 3
# The protocol's own limit for one sitemap, unpacked.
MAX_UNPACKED = 52_428_800
_SHAPE = Shape(
    frozenset({"urlset", "sitemapindex"}),
    frozenset({"url", "sitemap"}),
    frozenset({"loc", "lastmod"}),
)
# Unpacks to half a megabyte at most: a millisecond's work.
_PACKED_SLICE = 512


async def sitemap_urls(
    get: Get,
    url: str,
    max_urls: int = MAX_URLS,
    max_depth: int = MAX_DEPTH,
    announce: Announce | None = None,
    strangers: Strangers | None = None,
    note: Note | None = None,
) -> AsyncIterator[str]:
    """Every page of a sitemap and of the sitemaps it points to, as they are read.

    Before a page is handed over, `announce` is told of it and of when it was changed last, in the
    sitemap's own words: nothing, where it does not say.

    A sitemap that can't be read for good does not hide the others: they are read first, then the
    failure is raised. So is running into a cap: what is left out is never left out silently. A location
    that is longer than any URL that can be fetched is left out, and `note` is told how many were.

    Entries on other sites are left out, and `strangers` counts them. If there were no others, that is a
    failure.
    """
    walk = _Walk(get, max_urls, max_depth, strangers or Strangers())
    async for page, changed in walk.pages(url):
        if announce is not None:
            announce(page, changed)
        yield page
    if walk.too_long and note is not None:
        left_out = f"{walk.too_long:,} locations longer than {MAX_URL:,} characters left out"
        note(f"{safe_url(url)}: {left_out}")
    if walk.failure is not None:
        raise walk.failure
    if walk.strangers.count and not walk.found:
        raise FetchError(walk.strangers.words(), url, None, True, "data")


class Strangers:
    """The entries of sitemaps that lead to other sites: how many, and to which hosts."""

    def __init__(self, is_on_site: IsOnSite = lambda _, __: True) -> None:
        self._is_on_site = is_on_site
        self.count = 0
        self._hosts: dict[str, None] = {}

    def leave_out(self, location: str, home: str) -> bool:
        if self._is_on_site(location, home):
            return False
        self.count += 1
        if len(self._hosts) < MAX_NAMED:
            self._hosts[safe_url(location).partition("://")[2].partition("/")[0]] = None
        return True

    def words(self) -> str:
        hosts = ", ".join(self._hosts)
        entries = count(self.count, "entry", "entries")
        return f"{entries} on other sites left out ({hosts}); fetch.hosts allows them"


class _Walk:
    """One walk through a tree of sitemaps, each visited once."""

    def __init__(self, get: Get, max_urls: int, max_depth: int, strangers: Strangers) -> None:
        self.strangers = strangers
        self.failure: FetchError | None = None
        self.too_long = 0
        self._get = get
        self._max_urls = max_urls
        self._max_depth = max_depth
        self.found = 0
        self._listed = 0

    async def pages(self, url: str) -> AsyncIterator[tuple[str, str]]:
        waiting = deque([(url, 1)])
        seen = {url}
        while waiting:
            here, depth = waiting.popleft()
            async for name, location, changed in self._entries(here):
                if self.strangers.leave_out(location, url):
                    continue
                if name == "url":
                    yield self._counted(location, here), changed
                elif location not in seen:
                    seen.add(location)
                    self._check_size(depth, len(seen), location)
                    waiting.append((location, depth + 1))

    async def _entries(self, url: str) -> AsyncIterator[Entry]:
        try:
            response = await self._get(url)
            async for entries in paced(_read(response)):
                for entry in entries:
                    if len(entry[1]) > MAX_URL:
                        self.too_long += 1
                    else:
                        yield entry
        except (BadXml, BrokenCoding) as error:
            self._note(FetchError(f"the sitemap can't be read: {error}", url, None, True, "data"))
        except FetchError as error:
            if not error.is_permanent:
                raise
            self._note(error)

    def _note(self, failure: FetchError) -> None:
        self.failure = self.failure or failure

    def _counted(self, location: str, sitemap: str) -> str:
        self.found += 1
        if self.found > self._max_urls:
            raise FetchError(f"more than {self._max_urls} urls", sitemap, None, True, "data")
        return location

    def _check_size(self, depth: int, seen: int, location: str) -> None:
        if depth >= self._max_depth:
            message = f"sitemaps nested deeper than {self._max_depth}"
            raise FetchError(message, location, None, True, "data")
        self._listed += len(location)
        if seen > MAX_SITEMAPS or self._listed > MAX_LISTED:
            raise FetchError("more sitemaps than one walk may have", location, None, True, "data")


def _read(response: Response) -> Iterator[list[Entry]]:
    """The entries of one document, XML, packed or plain text: a list, maybe empty, for each slice of it."""
    chunks = _unpacked(response.body)
    first = next(chunks, b"")
    if first and not first.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").startswith(b"<"):
        yield from _lines(_chained(first, chunks), response)
        return
    for rows in read_rows(_chained(first, chunks), _SHAPE):
        yield [entry for row in rows if (entry := _entry(row, response.url))]


def _lines(chunks: Iterator[bytes], response: Response) -> Iterator[list[Entry]]:
    if response.content_type not in ("text/plain", ""):
        raise BadXml(f"{response.content_type[:40]} is not a sitemap")
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    begun = ""
    for chunk in chunks:
        *lines, begun = (begun + decoder.decode(chunk)).replace("\r", "\n").split("\n")
        # Of a line without end only so much is kept as shows that it is too long.
        begun = begun.lstrip()[: MAX_URL + 1]
        yield [("url", line, "") for line in map(str.strip, lines) if _is_web(line)]
    last = (begun + decoder.decode(b"", True)).strip()
    yield [("url", last, "")] if _is_web(last) else []


def _entry(row: Row, base: str) -> Entry | None:
    text = _text(row, "loc")
    if not text:
        return None
    if len(text) > MAX_URL:
        return row.name, text, ""
    try:
        url = urljoin(base, text)
    except ValueError:
        return None
    return (row.name, url, _text(row, "lastmod")[:LONGEST]) if _is_web(url) else None


def _is_web(url: str) -> bool:
    return url[:8].lower().startswith(("http://", "https://"))


def _text(row: Row, name: str) -> str:
    return next((f.text for f in row.fields if local_name(f.tag) == name), "")


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _unpacked(body: bytes) -> Iterator[bytes]:
    """The body in slices, gunzipped if it is a .gz file, and never more than the protocol allows."""
    if not body.startswith(b"\x1f\x8b"):
        yield from (body[at : at + SLICE] for at in range(0, len(body), SLICE))
        return
    inflater = Inflater(is_gzip=True)
    room = MAX_UNPACKED
    for at in range(0, len(body), _PACKED_SLICE):
        pieces: list[bytes] = []
        inflater.feed(body[at : at + _PACKED_SLICE], room + 1, pieces.append)
        room -= sum(map(len, pieces))
        if room < 0:
            raise BrokenCoding(f"it unpacks to more than {MAX_UNPACKED} bytes")
        for piece in pieces:
            yield from (piece[at : at + SLICE] for at in range(0, len(piece), SLICE))
    inflater.finish()
