"""Selectors: where a value stands, as text of one line, and the nodes or values that it finds on a page.

`json-ld:Product/offers/price`, `microdata:Car/name`, `meta:og:title`, `css:.price`, `css:a.mail@href`,
`label:dl.specs > dt|mileage`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborNode

from penstock.agents.learn.labels import pair_at
from penstock.agents.learn.page import Page, children, classes_of, is_usable, text_of
from penstock.agents.learn.structured import at_path, the_thing, things_of
from penstock.agents.learn.vocabulary import plain

METHODS = ("json-ld", "microdata", "opengraph", "label", "css")
_BY_PREFIX = {"meta": "opengraph"}
# Attributes that say what an element is for.
TELLING = ("itemprop", "data-field", "data-testid", "data-qa", "data-attr", "data-key", "property")
UPWARDS, FARTHEST = 5, 12


def method_of(selector: str) -> str:
    prefix = selector.partition(":")[0]
    return _BY_PREFIX.get(prefix, prefix)


def raw_values(page: Page, selector: str) -> list[Any]:
    """What the selector finds on a page, as it stands there."""
    prefix, _, rest = selector.partition(":")
    if prefix in ("json-ld", "microdata"):
        kind, _, path = rest.partition("/")
        thing = the_thing(page, things_of(page, prefix), kind)
        value = None if thing is None else at_path(thing, path)
        return [] if value is None else [value]
    if prefix == "meta":
        return _of_meta(page, rest)
    if prefix == "label":
        return _of_label(page, rest)
    return _of_css(page, rest) if prefix == "css" else []


def _of_meta(page: Page, rest: str) -> list[str]:
    """`og:title`, or `og:title| - Acme Motors` for one that ends with the site's name."""
    name, _, ending = rest.partition("|")
    text = page.graph.get(name, "")
    if ending and not text.endswith(ending):
        return []
    text = text.removesuffix(ending) if ending else text
    return [text] if text else []


def _of_label(page: Page, rest: str) -> list[str]:
    css, _, label = rest.rpartition("|")
    found = []
    for node in page.css(css):
        pair = pair_at(node)
        if pair is not None and plain(pair.label) == label:
            found.append(pair.value)
    return found


def _of_css(page: Page, rest: str) -> list[str]:
    css, at, attribute = rest.partition("@")
    nodes = page.css(css)
    if at:
        return [said for node in nodes if (said := node.attributes.get(attribute))]
    return [text for node in nodes if (text := text_of(node))]


def ways_to(node: LexborNode, steady: frozenset[str]) -> Iterator[str]:
    """CSS selectors that find a node, those first that say what it is for."""
    own = list(_names(node, steady))
    yield from own
    above = list(_above(node))
    for name in [*own, node.tag or "*"]:
        for distance, parent in enumerate(above):
            for outer in _names(parent, steady):
                yield f"{outer} {'> ' if distance == 0 else ''}{name}"
    path = node.tag or "*"
    for parent in above[:3]:
        path = f"{parent.tag} > {path}"
        yield path
    yield from _positions(node, list(_above(node, FARTHEST)), steady)


def _names(node: LexborNode, steady: frozenset[str]) -> Iterator[str]:
    """The names that a node has of its own."""
    told = node.attributes.get("id")
    if told and is_usable(told) and not any(sign.isdigit() for sign in told):
        yield f"#{told}"
    for name in TELLING:
        value = node.attributes.get(name)
        if value and value.isascii() and '"' not in value and not any(s.isdigit() for s in value):
            yield f'{node.tag}[{name}="{value}"]'
    classes = [name for name in classes_of(node) if name in steady]
    for name in classes:
        yield f"{node.tag}.{name}"
    if len(classes) > 1:
        yield f"{node.tag}.{'.'.join(classes[:3])}"


def _above(node: LexborNode, farthest: int = UPWARDS) -> Iterator[LexborNode]:
    at = node.parent
    for _ in range(farthest):
        if at is None or at.tag in ("html", None):
            return
        yield at
        at = at.parent


def _positions(node: LexborNode, above: list[LexborNode], steady: frozenset[str]) -> Iterator[str]:
    """By the place among its like, below something with a name: the weakest way."""
    path = f"{node.tag}:nth-of-type({_place(node)})"
    for parent in above:
        for outer in _names(parent, steady):
            yield f"{outer} > {path}"
        if parent.tag in ("body", "main"):
            yield f"{parent.tag} > {path}"
            return
        path = f"{parent.tag}:nth-of-type({_place(parent)}) > {path}"


def _place(node: LexborNode) -> int:
    if node.parent is None:
        return 1
    alike = [each.mem_id for each in children(node.parent) if each.tag == node.tag]
    return alike.index(node.mem_id) + 1
