"""The entries of a feed, however broken it is.

A feed that is XML is read as such. One that is not is mended where the mistake is a common one (entities of
HTML, bare ampersands, control characters, a document type, junk before it), and else read entry by entry, so
that one that is broken does not hide the others.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec

from penstock.http.charset import xml_codec
from penstock.http.feed import absolute, moment
from penstock.http.xml import BadXml, Field, Row, Shape, read_rows
from penstock.jobs.failures import BadData

MOST_ENTRIES = 10_000
_SHAPE = Shape(
    frozenset({"rss", "RDF", "feed"}),
    frozenset({"item", "entry"}),
    frozenset(
        "author category content creator date description enclosure encoded guid id issued link "
        "modified published pubdate subject summary title updated".split()
    ),
)
_ABOUT = "http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
_ENTITY = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{0,31});")
_BARE = re.compile(r"&(?!(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos);)")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_DOCTYPE = re.compile(r"<!DOCTYPE[^\[>]{0,2000}(?:\[[^\]]{0,20000}\]\s{0,9})?>", re.IGNORECASE)
_PREFIX = re.compile(r"</?([A-Za-z_][\w.-]{0,40}):|\s([A-Za-z_][\w.-]{0,40}):[\w.-]{1,40}=")
_BLOCK = re.compile(r"<(?:\w{1,20}:)?(item|entry)(?=[\s>])", re.IGNORECASE)
_END = re.compile(r"</(?:\w{1,20}:)?(item|entry)\s{0,9}>", re.IGNORECASE)
_MARKED_UP = re.compile(
    r"<(title|description|summary|content|content:encoded)((?:\s[^<>]{0,500})?)>(.*?)</\1\s{0,9}>",
    re.IGNORECASE | re.DOTALL,
)
_MARKUP = frozenset({"amp", "lt", "gt", "quot", "apos"})


class Entry(msgspec.Struct, kw_only=True):
    """One entry; what it lacks is empty."""

    id: str = ""
    url: str = ""
    title: str = ""
    summary: str = ""
    content: str = ""
    published: str = ""
    updated: str = ""
    author: str = ""
    categories: list[str] = []
    enclosures: list[dict[str, Any]] = []


class Entries(msgspec.Struct, kw_only=True):
    """The entries of a feed, how many could not be read, and how long it says that it stays as it is.

    `cut`: how many there are after the first MOST_ENTRIES, which are not read.
    """

    entries: list[Entry]
    broken: int = 0
    cut: int = 0
    ttl_s: float | None = None


def read_entries(body: bytes, base: str) -> Entries:
    """The entries in their order. What is no feed at all is BadData."""
    start = body.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"{"):
        return _json_feed(start, base)
    first = body[:20_000].decode(xml_codec(body[:1024]), "replace")
    if not re.search(r"<(\w{1,20}:)?(rss|rdf|feed)[\s>]", first, re.IGNORECASE):
        is_page = re.search(r"<(!doctype html|html|head|body)[\s>]", first[:2_000], re.IGNORECASE)
        what = "an HTML page" if is_page else "neither RSS, Atom nor JSON Feed"
        raise BadData(f"this is {what}, not a feed", cause="no feed")
    try:
        rows, broken, cut = list(_rows(body)), 0, 0
    except BadXml:
        rows, broken, cut = _mended(body)
    if broken and not rows:
        raise BadData("none of its entries can be read", cause="no feed")
    found = [_entry(row, base) for row in rows[:MOST_ENTRIES]]
    cut = max(cut, len(rows) - MOST_ENTRIES)
    return Entries(entries=found, broken=broken, cut=cut, ttl_s=_ttl_s(body))


def _rows(body: bytes) -> Iterator[Row]:
    for rows in read_rows([body], _SHAPE):
        yield from rows


def _mended(body: bytes) -> tuple[list[Row], int, int]:
    text = mended_text(body)
    try:
        return list(_rows(text.encode())), 0, 0
    except BadXml:
        pass
    rows: list[Row] = []
    broken = 0
    starts = [found.start() for found in _BLOCK.finditer(text)]
    for block in _blocks(text, starts[:MOST_ENTRIES]):
        found = _row(block) or _row(_MARKED_UP.sub(_as_text, block))
        rows += found
        broken += not found
    return rows, broken, max(0, len(starts) - MOST_ENTRIES)


def _row(block: str) -> list[Row]:
    try:
        return list(_rows(_alone(block).encode()))
    except BadXml:
        return []


def _as_text(found: re.Match[str]) -> str:
    """A field with markup in it that is no XML: the markup is its text."""
    if "<![CDATA[" in found[3]:
        return found[0]
    return f"<{found[1]}{found[2]}>{html.escape(found[3], quote=False)}</{found[1]}>"


def mended_text(body: bytes) -> str:
    """The document without what makes it no XML, as far as that can be told."""
    text = body.decode(xml_codec(body[:1024]), "replace")
    text = text[max(0, text.find("<")) :]
    text = re.sub(r"^<\?xml[^>]{0,300}\?>", "", text)
    text = _CONTROL.sub("", _DOCTYPE.sub("", text))
    text = _ENTITY.sub(_entity, text)
    return _BARE.sub("&amp;", text)


def _entity(found: re.Match[str]) -> str:
    """A character for an entity that HTML has and XML has not; a reference to no character is dropped."""
    name = found[1]
    if name in _MARKUP:
        return found[0]
    if name.startswith("#"):
        number = int(f"0{name[1:]}", 16) if name[1] in "xX" else int(name[1:])
        is_text = number in (9, 10, 13) or 32 <= number < 0xD800 or 0xE000 <= number < 0x110000
        return found[0] if is_text and number not in (0xFFFE, 0xFFFF) else ""
    known = html.unescape(found[0])
    return found[0] if known == found[0] else html.escape(known, quote=False)


def _blocks(text: str, starts: list[int]) -> Iterator[str]:
    """Each entry as it is written; one that nobody closed ends where the next begins."""
    for at, after in pairwise([*starts, len(text)]):
        block = text[at:after]
        end = _END.search(block)
        name = re.match(r"<([\w:]{1,40})", block)
        if end is not None:
            yield block[: end.end()]
        else:
            yield block if name is None else f"{block}</{name[1]}>"


def _alone(block: str) -> str:
    """An entry in a document of its own, with every prefix declared that it uses."""
    known = {
        "dc": "http://purl.org/dc/elements/1.1/",
        "content": "http://purl.org/rss/1.0/modules/content/",
        "media": "http://search.yahoo.com/mrss/",
        "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    }
    used = {one or other for one, other in _PREFIX.findall(block)} - {"xml", "xmlns"}
    declared = "".join(f' xmlns:{each}="{known.get(each, "urn:x")}"' for each in sorted(used))
    return f"<rss{declared}>{block}</rss>"


def _entry(row: Row, base: str) -> Entry:
    fields: dict[str, list[Field]] = {}
    for field in row.fields:
        namespace, _, name = field.tag.rpartition("}")
        prefix = "media:" if namespace.rstrip("/").endswith("mrss") else ""
        fields.setdefault(prefix + name.lower(), []).append(field)
    url = _url(fields, base)
    summary = _first(fields, "summary", "description")
    content = _longest(fields, "encoded", "content")
    updated = moment(_first(fields, "updated", "modified")) or ""
    published = moment(_first(fields, "pubdate", "published", "issued", "date")) or updated
    return Entry(
        id=(_first(fields, "guid", "id") or row.attributes.get(_ABOUT, "") or url).strip()[:2000],
        url=url,
        title=_first(fields, "title"),
        summary=summary,
        content=content,
        published=published,
        updated=updated,
        author=_first(fields, "creator", "author")[:500],
        categories=_categories(fields),
        enclosures=list(_enclosures(fields, base))[:50],
    )


def _first(fields: dict[str, list[Field]], *names: str) -> str:
    return next((f.text.strip() for name in names for f in fields.get(name, ()) if f.text), "")


def _longest(fields: dict[str, list[Field]], *names: str) -> str:
    return max(
        (f.text.strip() for name in names for f in fields.get(name, ())), key=len, default=""
    )


def _url(fields: dict[str, list[Field]], base: str) -> str:
    links = fields.get("link", [])
    rels = [f for f in links if f.attributes.get("rel", "alternate") == "alternate"]
    found = [f.attributes.get("href") or f.text for f in rels]
    found += [f.text for f in fields.get("guid", ()) if f.attributes.get("isPermaLink") != "false"]
    return next((url for each in found if each and (url := absolute(base, each))), "")


def _categories(fields: dict[str, list[Field]]) -> list[str]:
    found = [
        (f.attributes.get("term") or f.text).strip()[:200]
        for name in ("category", "subject")
        for f in fields.get(name, ())
    ]
    return list(dict.fromkeys(each for each in found if each))[:100]


def _enclosures(fields: dict[str, list[Field]], base: str) -> Iterator[dict[str, Any]]:
    links = [f for f in fields.get("link", ()) if f.attributes.get("rel") == "enclosure"]
    for field in (*fields.get("enclosure", ()), *links, *fields.get("media:content", ())):
        about = field.attributes
        url = absolute(base, about.get("url") or about.get("href") or "")
        if url:
            yield _enclosure(url, about.get("type"), about.get("length") or about.get("fileSize"))


def _enclosure(url: str, kind: Any, size: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"url": url}
    if isinstance(kind, str) and kind:
        made["type"] = kind[:100]
    if str(size).isdecimal() and len(str(size)) < 15:
        made["bytes"] = int(size)
    return made


def _ttl_s(body: bytes) -> float | None:
    """What the feed says of its rhythm: `ttl` in minutes, or so many updates in a period."""
    head = body[:20_000]
    ttl = re.search(rb"<ttl>\s{0,9}([0-9]{1,6})\s{0,9}</ttl>", head)
    if ttl:
        return int(ttl[1]) * 60.0
    period = re.search(rb"<sy:updatePeriod>\s{0,9}([a-z]{4,8})\s{0,9}</sy:", head)
    length = (
        {b"hourly": 3600.0, b"daily": 86400.0, b"weekly": 604800.0}.get(period[1])
        if period
        else None
    )
    if length is None:
        return None
    often = re.search(rb"<sy:updateFrequency>\s{0,9}([0-9]{1,4})\s{0,9}</sy:", head)
    return length / max(1, int(often[1])) if often else length


def _json_feed(body: bytes, base: str) -> Entries:
    try:
        feed = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise BadData(f"this is no JSON Feed: {error}", cause="no feed") from None
    if not isinstance(feed, dict) or not isinstance(feed.get("items"), list):
        raise BadData("this is JSON, not a JSON Feed: it has no items", cause="no feed")
    items = [each for each in feed["items"] if isinstance(each, dict)]
    found = [_json_entry(each, base) for each in items[:MOST_ENTRIES]]
    cut = max(0, len(items) - MOST_ENTRIES)
    return Entries(entries=found, broken=len(feed["items"]) - len(items), cut=cut)


def _json_entry(item: dict[str, Any], base: str) -> Entry:
    def text(*names: str) -> str:
        return next(
            (item[n].strip() for n in names if isinstance(item.get(n), str) and item[n]), ""
        )

    url = absolute(base, text("url", "external_url")) or ""
    authors = item.get("authors") or [item.get("author")]
    names = [a["name"] for a in authors if isinstance(a, dict) and isinstance(a.get("name"), str)]
    attached = item.get("attachments")
    tags = item.get("tags")
    identity = item.get("id")
    return Entry(
        id=str(identity)[:2000] if isinstance(identity, str | int | float) else url,
        url=url,
        title=text("title"),
        summary=text("summary"),
        content=text("content_html", "content_text"),
        published=moment(text("date_published")) or "",
        updated=moment(text("date_modified")) or "",
        author=", ".join(names)[:500],
        categories=[str(tag)[:200] for tag in tags][:100] if isinstance(tags, list) else [],
        enclosures=[
            _enclosure(link, each.get("mime_type"), each.get("size_in_bytes"))
            for each in (attached if isinstance(attached, list) else [])
            if isinstance(each, dict) and (link := absolute(base, str(each.get("url") or "")))
        ][:50],
    )
