"""Feeds: RSS 2.0, RSS 1.0 and Atom, each entry as the same six fields."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin

from penstock.http.addresses import MAX_URL
from penstock.http.failures import FetchError
from penstock.http.lastmod import LONGEST
from penstock.http.pace import paced
from penstock.http.response import Response
from penstock.http.sitemap import Announce, Get
from penstock.http.xml import BadXml, Field, Row, Shape, read_rows

_SHAPE = Shape(
    frozenset({"rss", "RDF", "feed"}),
    frozenset({"item", "entry"}),
    frozenset(
        "content date description encoded guid id issued link modified published pubdate summary title"
        " updated".split()
    ),
)
_PREFIXES = {
    "": "",
    "http://purl.org/rss/1.0/": "",
    "http://my.netscape.com/rdf/simple/0.9/": "",
    "http://www.w3.org/2005/Atom": "",
    "http://purl.org/atom/ns#": "",
    "http://purl.org/dc/elements/1.1/": "dc:",
    "http://purl.org/rss/1.0/modules/content/": "content:",
}
_ABOUT = "http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
# A key and a URL are whole, or they are not there.
_LONGEST_ID = MAX_URL

Entry = dict[str, str | None]


async def feed_entries(
    get: Get, url: str, announce: Announce | None = None
) -> AsyncIterator[Entry]:
    """The entries of a feed, in its order: url, title, id, published and updated (ISO, UTC) and summary.

    What an entry lacks is None; a link that is not http or https counts as lacking. Before an entry is
    handed over, `announce` is told of its url and of when it was updated last, in the feed's own words.
    """
    response = await get(url)
    try:
        async for entries in paced(_read(response)):
            for entry, updated in entries:
                if announce is not None and entry["url"]:
                    announce(entry["url"], updated)
                yield entry
    except BadXml as error:
        raise FetchError(f"the feed can't be read: {error}", url, None, True, "data") from None


def _read(response: Response) -> Iterator[list[tuple[Entry, str]]]:
    """The entries, each with when it was updated in the feed's own words: a list for each slice."""
    for rows in read_rows([response.body], _SHAPE):
        named = [(row, _named(row)) for row in rows]
        yield [
            (_entry(row, fields, response.url), (_updated(fields) or "")[:LONGEST])
            for row, fields in named
        ]


def _entry(row: Row, fields: dict[str, list[Field]], base: str) -> Entry:
    identity = _first(fields, "guid", "id") or row.attributes.get(_ABOUT)
    if identity and len(identity) > _LONGEST_ID:
        identity = None
    url = _link(fields, base)
    published = _first(fields, "pubdate", "published", "issued", "dc:date")
    return {
        "url": url,
        "title": _first(fields, "title", "dc:title"),
        "id": identity or url,
        "published": moment(published or _updated(fields)),
        "updated": moment(_updated(fields)),
        "summary": _first(fields, "description", "summary", "content", "content:encoded"),
    }


def _updated(fields: dict[str, list[Field]]) -> str | None:
    return _first(fields, "updated", "modified")


def _named(row: Row) -> dict[str, list[Field]]:
    """The fields by short name; those of other vocabularies (media:title) are left out."""
    named: dict[str, list[Field]] = {}
    for field in row.fields:
        namespace, _, name = field.tag.rpartition("}")
        prefix = _PREFIXES.get(namespace)
        if prefix is not None:
            named.setdefault(prefix + name.lower(), []).append(field)
    return named


def _first(fields: dict[str, list[Field]], *names: str) -> str | None:
    return next((f.text for name in names for f in fields.get(name, ()) if f.text), None)


def _link(fields: dict[str, list[Field]], base: str) -> str | None:
    links = [
        f for f in fields.get("link", ()) if f.attributes.get("rel", "alternate") == "alternate"
    ]
    found = next((text for f in links if (text := f.text or f.attributes.get("href"))), None)
    if found is None:
        guids = fields.get("guid", ())
        found = next((f.text for f in guids if f.attributes.get("isPermaLink") != "false"), None)
    return absolute(base, found) if found else None


def absolute(base: str, link: str) -> str | None:
    try:
        url = urljoin(base, link.strip()) if len(link) <= MAX_URL else ""
    except ValueError:
        return None
    return url if url.lower().startswith(("http://", "https://")) else None


def moment(text: str | None) -> str | None:
    """A date of either kind as ISO in UTC; None if it is no date."""
    if text is None or len(text) > LONGEST:
        return None
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(text)
            known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return known.astimezone(UTC).isoformat()
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None
