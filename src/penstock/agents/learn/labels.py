"""Labels: pairs of a word and the value beside it, as pages for people have them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from penstock.agents.learn.page import BLOCKS, Page, children, own_text, text_of
from penstock.agents.learn.vocabulary import LONGEST_LABEL, MOST_LABEL_WORDS, plain

HEADINGS = frozenset({"h2", "h3", "h4", "h5", "h6"})
_INLINE = re.compile(r"^\s*([^:：\n]{1,32}?)\s*[:：]\s*(\S.*)$")
_WHOLES = frozenset({"table", "thead", "tbody", "tfoot", "tr", "ul", "ol", "dl", "main", "body"})
_LINK_TEXT = frozenset({"a", "button", "input", "select", "option", "label"})


@dataclass(frozen=True, slots=True)
class Pair:
    """A label, the node that has it, and the value that belongs to it."""

    label: str
    node: LexborNode
    value: str
    # Where a heading has a text below it.
    is_heading: bool = False


def pairs_of(page: Page) -> Iterator[Pair]:
    """Every pair on a page, the nodes in their order."""
    for node in page.nodes:
        found = pair_at(node)
        if found is not None:
            yield found


def pair_at(node: LexborNode) -> Pair | None:
    """The pair whose label is this node, or begins it."""
    if node.tag in _LINK_TEXT:
        return None
    if node.tag in _WHOLES or any(child.tag in BLOCKS for child in children(node)):
        return None
    text = text_of(node)
    return _inline(node, text) or _beside(node, text)


def _inline(node: LexborNode, text: str) -> Pair | None:
    """`Mileage: 12,000 mi` in one node, or with the label in bold."""
    first = next(children(node), None)
    if first is not None and own_text(node) and not _begins(node) and _is_label(text_of(first)):
        label, rest = text_of(first), text.removeprefix(text_of(first)).strip(" :：–-")
        if rest and text.startswith(label) and _is_bold(first):
            return Pair(_bare(label), node, rest)
    match = _INLINE.match(text)
    if match and _is_label(match[1]) and not match[2].startswith("//"):
        return Pair(_bare(match[1]), node, match[2].strip())
    return None


def _begins(node: LexborNode) -> bool:
    """Whether text stands before the first element of the node."""
    child = node.child
    return child is not None and child.is_text_node and bool((child.text_content or "").strip())


def _is_bold(node: LexborNode) -> bool:
    return node.tag in ("b", "strong", "em", "span", "i", "small", "label")


def _beside(node: LexborNode, text: str) -> Pair | None:
    """A term and its definition, two cells of a row, or the first and second of two elements."""
    if not _is_label(text):
        return None
    after = _next(node)
    if after is None:
        return None
    if node.tag in HEADINGS:
        return _below(node, text)
    if (node.tag, after.tag) in (("dt", "dd"), ("th", "td")) and _is_first_of_row(node):
        return _pair(text, node, after)
    parent = node.parent
    if parent is None or parent.tag in ("body", "main", "ul", "ol", "tbody", "table"):
        return None
    beside = list(children(parent))
    is_first = beside[0].mem_id == node.mem_id and len(beside) == 2
    is_plain = after.tag not in _LINK_TEXT or after.tag == "a"
    return _pair(text, node, after) if is_first and is_plain and not own_text(parent) else None


def _is_first_of_row(node: LexborNode) -> bool:
    return node.tag == "dt" or node.parent is None or len(list(children(node.parent))) == 2


def _pair(text: str, node: LexborNode, after: LexborNode) -> Pair | None:
    value = text_of(after)
    return Pair(_bare(text), node, value) if value else None


def _below(node: LexborNode, text: str) -> Pair | None:
    """The blocks below a heading, up to the next one."""
    parts: list[str] = []
    at = _next(node)
    while at is not None and at.tag in ("p", "div", "blockquote", "span"):
        if any(child.tag in HEADINGS for child in children(at)):
            break
        if parts and pair_at(at) is not None:
            break
        parts.append(text_of(at))
        at = _next(at)
    value = " ".join(part for part in parts if part)
    return Pair(_bare(text), node, value, is_heading=True) if value else None


def _next(node: LexborNode) -> LexborNode | None:
    at = node.next
    while at is not None and not at.is_element_node:
        if at.is_text_node and (at.text_content or "").strip():
            return None
        at = at.next
    return at


def _is_label(text: str) -> bool:
    bare = _bare(text)
    if not bare or len(bare) > LONGEST_LABEL or len(bare.split()) > MOST_LABEL_WORDS:
        return False
    return bare[0].isalpha() and not any(sign in bare for sign in "$€£@|") and bool(plain(bare))


def _bare(text: str) -> str:
    return text.strip().rstrip(":：").strip()
