"""What the corpus is compared with: extruct, and a parser that somebody has written by hand."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser

from penstock.agents.learn.values import value_of
from penstock.agents.learn.vocabulary import FIELDS, plain

# extruct hands over what pages say of themselves; whoever uses it maps that to fields, as is done here.
SYNTAXES = ["json-ld", "microdata", "opengraph"]
GRAPH = {"og:title": "title", "og:description": "description", "og:image": "images"}


def by_extruct(url: str, html: str) -> Mapping[str, Any] | None:
    """The fields of the thing that a page describes, by the names of schema.org; OpenGraph for the rest."""
    extruct: Any = importlib.import_module("extruct")
    try:
        said = extruct.extract(html, base_url=url, syntaxes=SYNTAXES, uniform=True)
    except Exception:
        return None
    found: dict[str, Any] = {}
    # A list has a title, too: a page is of an item if it describes a thing with more than that.
    for thing in _things(said.get("json-ld", []) + said.get("microdata", [])):
        for name, about in FIELDS.items():
            for path in about.said:
                value = _at(thing, path)
                if name == "images":
                    value = [urljoin(url, each) for each in _texts(value)] or None
                else:
                    value = value_of(about.kind, next(iter(_texts(value)), None), url)
                if value is not None:
                    found.setdefault(name, value)
    is_item = len(found.keys() - {"title", "images"}) > 0
    for thing in said.get("opengraph", []):
        for key, name in GRAPH.items():
            if isinstance(value := thing.get(key), str):
                found.setdefault(name, [urljoin(url, value)] if name == "images" else value)
    return found if is_item or "description" in found else None


def _things(found: list[Any]) -> Iterator[dict[str, Any]]:
    for each in found:
        if isinstance(each, dict):
            kinds = each.get("@type")
            if kinds not in ("BreadcrumbList", "WebSite", "Organization", "ItemList", "WebPage"):
                yield each
            graph = each.get("@graph")
            yield from _things(graph if isinstance(graph, list) else [])


def _at(thing: Any, path: str) -> Any:
    for name in path.split("/"):
        thing = thing[0] if isinstance(thing, list) and thing else thing
        thing = thing.get(name) if isinstance(thing, dict) else None
    return thing


def _texts(value: Any) -> list[str]:
    found = value if isinstance(value, list) else [value]
    named = [
        each.get("name") or each.get("url") if isinstance(each, dict) else each for each in found
    ]
    return [str(each) for each in named if isinstance(each, str | int | float)]


# A parser for sites that sell things, as people write it in an afternoon: looking at some of them.
_LABELS = {
    **dict.fromkeys(("price", "asking price", "preis", "prix"), "price"),
    **dict.fromkeys(("make", "brand", "marke"), "make"),
    **dict.fromkeys(("model", "modell"), "model"),
    **dict.fromkeys(("year", "baujahr"), "year"),
    **dict.fromkeys(("color", "colour"), "color"),
    "current bid": "current_bid",
    **{
        name: name
        for name in (
            "vin mileage sku engine phone transmission location condition category address email lot estimate"
        ).split()
    },
}
_INLINE = re.compile(r"^\s*([A-Za-zÀ-ÿ ]{2,20})\s*:\s*(.{1,80})$")
_GALLERY = ".gallery img, .photos img, .images img, figure img"
_ABOUT = ".description, #description, [itemprop=description]"


def by_hand(url: str, html: str) -> Mapping[str, Any] | None:
    """The heading, labels beside their values, a description and a gallery by the usual names."""
    tree = LexborHTMLParser(html)
    heading = tree.css_first("h1")
    found: dict[str, Any] = {}
    for label, value in _labelled(tree):
        name = _LABELS.get(plain(label))
        if name and name in FIELDS:
            read = value_of(FIELDS[name].kind, value, url)
            if read is not None:
                found.setdefault(name, read)
    if heading is None or not found:
        return None
    found["title"] = " ".join(heading.text().split())
    if (about := tree.css_first(_ABOUT)) is not None:
        found["description"] = " ".join(about.text().split())
    images = [
        urljoin(url, src) for each in tree.css(_GALLERY) if (src := each.attributes.get("src"))
    ]
    if images:
        found["images"] = images
    return found


def _labelled(tree: LexborHTMLParser) -> Iterator[tuple[str, str]]:
    for first, second in (("dt", "dd"), ("th", "td"), ("b", "span"), ("span", "span")):
        for node in tree.css(first):
            after = node.next
            while after is not None and not after.is_element_node:
                after = after.next
            if after is not None and after.tag == second:
                yield node.text().strip(" :\n"), " ".join(after.text().split())
    for node in tree.css("li, p, td, div"):
        if node.child is not None and (match := _INLINE.match(node.text(deep=True).strip())):
            yield match[1], match[2]
