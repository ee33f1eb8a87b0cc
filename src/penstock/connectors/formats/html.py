"""HTML: its title, main text, links, and what it says about itself (JSON-LD, microdata, OpenGraph)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from penstock.connectors.formats.parsed import MOST_LINKS, MOST_TEXT, Parsed, one_line, tidy
from penstock.http.addresses import MAX_URL
from penstock.http.charset import decoded

# What is around the text of a page, and not in it.
_AROUND = (
    "script, style, noscript, template, svg, iframe, object, nav, header, footer, aside, form, dialog, "
    "[hidden], [aria-hidden=true], [role=navigation], [role=banner], [role=contentinfo], [role=search]"
)
_BLOCKS = frozenset(
    "address article blockquote br dd details div dl dt fieldset figcaption figure h1 h2 h3 h4 h5 h6 hr li "
    "main ol p pre section summary table td th tr ul".split()
)
_BLANKS = re.compile(r"\s+")
MOST_ITEMS = 100
DEEPEST_ITEM = 8
# A page of more nodes is cut: to walk it takes time that others miss.
MOST_NODES = 200_000


# To parse takes time that grows with the square of the depth. Elements that others close don't add to it.
DEEPEST = 1_000
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,20})")
_CLOSED_BY_OTHERS = frozenset(
    "area base br col colgroup dd dt embed hr html head body img input li link meta option p param source "
    "tbody td tfoot th thead tr track wbr".split()
)


def parsed_tree(text: str) -> tuple[LexborHTMLParser, bool]:
    """The tree of a page, and whether it was cut where it is nested too deep."""
    depth = 0
    for tag in _TAG.finditer(text) if text.count("<") > DEEPEST else ():
        if tag[2].lower() in _CLOSED_BY_OTHERS:
            continue
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > DEEPEST:
            return LexborHTMLParser(text[: tag.start()]), True
    return LexborHTMLParser(text), False


def read_html(body: bytes, name: str, url: str, content_type: str) -> Parsed:
    tree, is_cut = parsed_tree(decoded(body, content_type))
    head = _head(tree)
    structured = {
        name: found
        for name, found in (("json_ld", json_ld(tree)), ("microdata", microdata(tree)))
        if found
    }
    title = head.pop("title", "")
    if og := open_graph(tree):
        head["og"] = og
    if is_cut:
        head["cut"] = True
    links = list(links_of(tree, url)) if url else []
    return Parsed(
        kind="html",
        title=title,
        text=main_text(tree),
        meta=head,
        links=links,
        data=structured or None,
    )


def _head(tree: LexborHTMLParser) -> dict[str, Any]:
    """Title, description, language, author, canonical URL: what there is of them."""
    found = {
        "title": _content(tree, "meta[property='og:title']")
        or _text(tree, "title")
        or _text(tree, "h1"),
        "description": _content(tree, "meta[name=description]")
        or _content(tree, "meta[property='og:description']"),
        "author": _content(tree, "meta[name=author]"),
        "published": _content(tree, "meta[property='article:published_time']"),
        "language": _attribute(tree, "html", "lang"),
        "canonical": _attribute(tree, "link[rel=canonical]", "href"),
    }
    return {name: one_line(text, 2000) for name, text in found.items() if text}


def open_graph(tree: LexborHTMLParser) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in tree.css("meta[property^='og:']")[:MOST_ITEMS]:
        name, content = node.attributes.get("property"), node.attributes.get("content")
        if name and content:
            found.setdefault(name.removeprefix("og:")[:100], one_line(content, 2000))
    return found


def json_ld(tree: LexborHTMLParser) -> list[Any]:
    """Each block of JSON-LD; what is no JSON is left out."""
    found: list[Any] = []
    for node in tree.css("script[type='application/ld+json']")[:MOST_ITEMS]:
        try:
            value = msgspec.json.decode(node.text().strip().encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        found += value if isinstance(value, list) else [value]
    return found[:MOST_ITEMS]


def microdata(tree: LexborHTMLParser) -> list[dict[str, Any]]:
    """The items of a page that stand in no other item."""
    tops = [
        node for node in tree.css("[itemscope]")[:MOST_ITEMS] if "itemprop" not in node.attributes
    ]
    return [_item(node, 0) for node in tops]


def _item(node: LexborNode, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if kind := node.attributes.get("itemtype"):
        made["type"] = one_line(kind)
    for prop in _properties(node):
        name = prop.attributes.get("itemprop") or ""
        if "itemscope" in prop.attributes and depth < DEEPEST_ITEM:
            value: Any = _item(prop, depth + 1)
        else:
            value = _value(prop)
        for each in name.split()[:5]:
            made.setdefault(each[:100], []).append(value)
    return {name: v[0] if isinstance(v, list) and len(v) == 1 else v for name, v in made.items()}


def _properties(scope: LexborNode) -> Iterator[LexborNode]:
    """The properties of an item, without those of items inside it."""
    waiting = list(_children(scope))[::-1]
    for _ in range(10_000):
        if not waiting:
            return
        node = waiting.pop()
        is_property = "itemprop" in node.attributes
        if is_property:
            yield node
        if "itemscope" not in node.attributes:
            waiting += list(_children(node))[::-1]


def _children(node: LexborNode) -> Iterator[LexborNode]:
    return (child for child in _nodes(node) if child.is_element_node)


def _value(node: LexborNode) -> str:
    for name in ("content", "datetime", "href", "src", "value"):
        if text := node.attributes.get(name):
            return one_line(text, 2000)
    return one_line(node.text(separator=" "), 2000)


def main_text(tree: LexborHTMLParser) -> str:
    """The text of `main` or of the longest `article`, else of the body without what is around it."""
    for node in tree.css(_AROUND):
        node.decompose(recursive=True)
    mains = tree.css("main, [role=main]") or tree.css("article")
    texts = [tidy("".join(_words(node))) for node in mains[:MOST_ITEMS]]
    best = max(texts, key=len, default="")
    if len(best) >= 200 or tree.body is None:
        return best
    whole = tidy("".join(_words(tree.body)))
    return whole if len(whole) > 3 * len(best) else best or whole


def _words(top: LexborNode) -> Iterator[str]:
    """The text of a node, a line for each block, without recursion: pages are nested as deep as they like."""
    waiting: list[LexborNode | None] = [top]
    length = 0
    for _ in range(MOST_NODES):
        if not waiting or length > MOST_TEXT:
            return
        node = waiting.pop()
        if node is None:  # a block ends here
            yield "\n"
        elif node.is_text_node:
            text = _BLANKS.sub(" ", node.text_content or "")
            length += len(text)
            yield text
        elif node.is_element_node:
            if node.tag in _BLOCKS:
                yield "\n"
                waiting.append(None)
            waiting += reversed(list(_nodes(node)))


def _nodes(node: LexborNode) -> Iterator[LexborNode]:
    child = node.child
    while child is not None:
        yield child
        child = child.next


def links_of(tree: LexborHTMLParser, base: str) -> Iterator[str]:
    """Absolute http and https links, in the order of the page, each once, without fragments."""
    found: dict[str, None] = {}
    own = _attribute(tree, "base[href]", "href")
    base = _absolute(base, own) or base if own else base
    for node in tree.css("a[href], area[href]"):
        if len(found) >= MOST_LINKS:
            return
        link = _absolute(base, node.attributes.get("href") or "")
        if link and link not in found:
            found[link] = None
            yield link


def _absolute(base: str, link: str) -> str | None:
    if not link or len(link) > MAX_URL:
        return None
    try:
        url = urlsplit(urljoin(base, link.strip()))
    except ValueError:
        return None
    if url.scheme not in ("http", "https") or not url.netloc:
        return None
    return url._replace(fragment="").geturl()


def _content(tree: LexborHTMLParser, selector: str) -> str:
    return _attribute(tree, selector, "content")


def _attribute(tree: LexborHTMLParser, selector: str, name: str) -> str:
    node = tree.css_first(selector)
    return (node.attributes.get(name) or "") if node is not None else ""


def _text(tree: LexborHTMLParser, selector: str) -> str:
    node = tree.css_first(selector)
    return node.text() if node is not None else ""
