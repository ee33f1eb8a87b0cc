"""Feeds: RSS 2.0, RSS 1.0 and Atom, each entry as the same five fields."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin

from penstock.sources.failures import FetchError
from penstock.sources.sitemap import Get
from penstock.sources.xml import BadXml, Field, Row, read_rows

_ROOTS = frozenset({"rss", "RDF", "feed"})
_ROWS = frozenset({"item", "entry"})
_PREFIXES = {
    "": "",
    "http://purl.org/rss/1.0/": "",
    "http://my.netscape.com/rdf/simple/0.9/": "",
    "http://www.w3.org/2005/Atom": "",
    "http://purl.org/atom/ns#": "",
    "http://purl.org/dc/elements/1.1/": "dc:",
    "http://purl.org/rss/1.0/modules/content/": "content:",
}
_ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
_SLICE = 65536

Entry = dict[str, str | None]


async def feed_entries(get: Get, url: str) -> AsyncIterator[Entry]:
    """The entries of a feed, in its order: url, title, id, published (ISO, UTC) and summary.

    What an entry lacks is None; a link that is not http or https counts as lacking.
    """
    response = await get(url)
    body = response.body.lstrip()
    slices = (body[at : at + _SLICE] for at in range(0, len(body), _SLICE))
    try:
        for row in read_rows(slices, _ROOTS, _ROWS):
            yield _entry(row, response.url)
    except BadXml as error:
        raise FetchError(f"the feed can't be read: {error}", url, None, True, "data") from None


def _entry(row: Row, base: str) -> Entry:
    fields = _named(row)
    identity = _first(fields, "guid", "id") or row.attributes.get(_ABOUT)
    url = _link(fields, base)
    return {
        "url": url,
        "title": _first(fields, "title", "dc:title"),
        "id": identity or url,
        "published": _moment(
            _first(
                fields,
                "pubdate",
                "published",
                "issued",
                "dc:date",
                "updated",
                "modified",
            )
        ),
        "summary": _first(fields, "description", "summary", "content", "content:encoded"),
    }


def _named(row: Row) -> dict[str, list[Field]]:
    """The fields by short name; those of other vocabularies (media:title) are left out."""
    named: dict[str, list[Field]] = {}
    for field in row.fields:
        namespace, _, name = field.tag.removeprefix("{").rpartition("}")
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
    return _absolute(base, found) if found else None


def _absolute(base: str, link: str) -> str | None:
    try:
        url = urljoin(base, link.strip())
    except ValueError:
        return None
    return url if url.lower().startswith(("http://", "https://")) else None


def _moment(text: str | None) -> str | None:
    """A date of either kind as ISO in UTC; None if it is no date."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(text or "")
            known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return known.astimezone(UTC).isoformat()
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None
