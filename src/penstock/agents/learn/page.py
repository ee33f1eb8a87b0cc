"""A page: its tree, what it says about itself, and which of its parts are about something else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from penstock.agents.learn.values import clean
from penstock.connectors.formats.html import json_ld, microdata, open_graph, parsed_tree

LONGEST_PAGE = 2_000_000
# Around what a page is about.
AROUND = (
    "header, footer, nav, aside, form, dialog, script, style, noscript, template, svg, iframe, "
    "[role=navigation], [role=banner], [role=contentinfo], [hidden], [aria-hidden=true]"
)
BLOCKS = frozenset(
    "address article blockquote br dd details div dl dt fieldset figcaption figure h1 h2 h3 h4 h5 h6 hr li "
    "main ol p pre section summary table td th tr ul body center".split()
)
UNREAD = frozenset({"script", "style", "noscript", "template", "head", "title"})
# So many alike, each with a link to another item, are a list.
FEWEST_CARDS = 2
MOST_NODES = 50_000

IsItem = Callable[[str], bool]


class Page:
    """One page. `is_item` tells addresses of pages like it, so that lists of others are not taken for it."""

    def __init__(self, url: str, html: str, is_item: IsItem | None = None) -> None:
        self.url = url
        self.is_item = is_item
        self.tree: LexborHTMLParser = parsed_tree(html[:LONGEST_PAGE])[0]

    @cached_property
    def base(self) -> str:
        node = self.tree.css_first("base[href]")
        href = "" if node is None else node.attributes.get("href") or ""
        return urljoin(self.url, href) if href else self.url

    @cached_property
    def things(self) -> list[dict[str, Any]]:
        return list(_things(json_ld(self.tree)))

    @cached_property
    def items(self) -> list[dict[str, Any]]:
        return microdata(self.tree)

    @cached_property
    def graph(self) -> dict[str, str]:
        """OpenGraph and named metadata, by property."""
        found = {f"og:{name}": text for name, text in open_graph(self.tree).items()}
        for node in self.tree.css("meta[name][content], meta[property^='product:'][content]"):
            name = node.attributes.get("name") or node.attributes.get("property") or ""
            found.setdefault(name, node.attributes.get("content") or "")
        title = self.tree.css_first("title")
        if title is not None:
            found.setdefault("title", clean(title.text()))
        return found

    @cached_property
    def heading(self) -> str:
        """The first h1 that is about the page."""
        for node in self.css("h1"):
            return text_of(node)
        return ""

    @cached_property
    def nodes(self) -> list[LexborNode]:
        """The elements of the body that are about the page itself, in their order."""
        body = self.tree.body
        return [] if body is None else list(_walk(body, self.noise))

    @cached_property
    def noise(self) -> frozenset[int]:
        """What is around the content, and lists of other items, by the number of the topmost node."""
        around = {node.mem_id for node in self._found(AROUND)}
        return frozenset(around | set(self._cards()))

    def css(self, selector: str) -> list[LexborNode]:
        """The nodes that match and are about the page itself; none for a selector that is none."""
        return [node for node in self._found(selector) if not self.is_noise(node)]

    def is_noise(self, node: LexborNode) -> bool:
        at: LexborNode | None = node
        while at is not None:
            if at.mem_id in self.noise:
                return True
            at = at.parent
        return False

    def _found(self, selector: str) -> list[LexborNode]:
        try:
            return list(self.tree.css(selector))
        except (SelectolaxError, ValueError):
            return []

    def leads_elsewhere(self, href: str) -> bool:
        """Whether a link leads to another item."""
        if not href or href.startswith(("#", "mailto:", "tel:", "javascript:")):
            return False
        try:
            url = urljoin(self.base, href).partition("#")[0]
        except ValueError:
            return False
        is_other = url.rstrip("/") != self.url.partition("#")[0].rstrip("/")
        return is_other and self.is_item is not None and self.is_item(url)

    def _cards(self) -> Iterator[int]:
        """The outermost elements around a link to another item that stand among their like."""
        if self.is_item is None:
            return
        for link in self._found("a[href]"):
            if self.leads_elsewhere(link.attributes.get("href") or ""):
                yield _card_of(link, self.leads_elsewhere).mem_id


def _card_of(link: LexborNode, leads: Callable[[str], bool]) -> LexborNode:
    """What a link to another item stands for: itself, or the element that is repeated beside others."""
    best = link
    at = link
    while at.parent is not None and at.parent.tag not in ("body", "main", "html"):
        alike = [each for each in children(at.parent) if each.tag == at.tag]
        with_links = [each for each in alike if _leads_out(each, leads)]
        if len(with_links) >= FEWEST_CARDS:
            best = at
        at = at.parent
    return best


def _leads_out(node: LexborNode, leads: Callable[[str], bool]) -> bool:
    if node.tag == "a":
        return leads(node.attributes.get("href") or "")
    return any(leads(each.attributes.get("href") or "") for each in node.css("a[href]")[:20])


def _walk(top: LexborNode, noise: frozenset[int]) -> Iterator[LexborNode]:
    waiting = [top]
    for _ in range(MOST_NODES):
        if not waiting:
            return
        node = waiting.pop()
        if node.mem_id in noise or node.tag in UNREAD:
            continue
        yield node
        waiting += reversed(list(children(node)))


def children(node: LexborNode) -> Iterator[LexborNode]:
    child = node.child
    while child is not None:
        if child.is_element_node:
            yield child
        child = child.next


def classes_of(node: LexborNode) -> list[str]:
    return (node.attributes.get("class") or "").split()


def own_text(node: LexborNode) -> str:
    """The text that stands in the node itself."""
    found, child = [], node.child
    while child is not None:
        if child.is_text_node:
            found.append(child.text_content or "")
        child = child.next
    return clean(" ".join(found))


def text_of(node: LexborNode) -> str:
    """The text of a node: blocks in it are apart, and what is in a line is not."""
    parts: list[str] = []
    waiting: list[LexborNode | str] = [node]
    while waiting and len(parts) < MOST_NODES:
        at = waiting.pop()
        if isinstance(at, str):
            parts.append(at)
        elif at.is_text_node:
            parts.append(at.text_content or "")
        elif at.is_element_node and at.tag not in UNREAD:
            inner: list[LexborNode | str] = list(_all_children(at))
            if at.tag in BLOCKS:
                inner = [" ", *inner, " "]
            waiting += reversed(inner)
    return clean("".join(parts))


def _all_children(node: LexborNode) -> Iterator[LexborNode]:
    child = node.child
    while child is not None:
        yield child
        child = child.next


def _things(found: list[Any]) -> Iterator[dict[str, Any]]:
    """The objects that a page describes: each block, and those of its graph."""
    waiting = found[::-1]
    for _ in range(200):
        if not waiting:
            return
        thing = waiting.pop()
        if isinstance(thing, list):
            waiting += thing[:100][::-1]
        elif isinstance(thing, dict):
            yield thing
            waiting += [thing[name] for name in ("@graph", "mainEntity") if name in thing][::-1]


_NUMBERED = re.compile(r"\d{2,}|^[0-9a-f]{8,}$")


def steady_classes(pages: list[Page]) -> frozenset[str]:
    """The classes that most of the pages have: others are of one page, as `post-1234`."""
    counts: Counter[str] = Counter()
    for page in pages:
        counts.update({name for node in page.nodes for name in classes_of(node)})
    return frozenset(
        name for name, count in counts.items() if count * 2 >= len(pages) and is_usable(name)
    )


def is_usable(name: str) -> bool:
    """Whether a selector can say the name as it is."""
    return re.fullmatch(r"-?[A-Za-z_][\w-]*", name) is not None and name.isascii()


def site_of(url: str) -> str:
    """The host of an address without `www.` and port, in lower case."""
    host = urlsplit(url if "//" in url else f"//{url}").hostname or ""
    return host.lower().removeprefix("www.")
