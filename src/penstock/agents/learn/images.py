"""Images: which belong to the item of a page, and by which selectors to find them and no others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborNode

from penstock.agents.learn.page import Page, children, classes_of
from penstock.agents.learn.selectors import ways_to
from penstock.agents.learn.shown import signature
from penstock.agents.learn.vocabulary import words_of_token

SMALLEST = 90
MOST_SELECTORS = 3
MOST_WAYS = 80
_SOURCES = ("data-full", "data-src", "data-original", "data-lazy", "data-lazy-src")
_ORNAMENT = frozenset(
    "logo icon icons sprite badge banner avatar placeholder pixel spacer button promo ad ads advert flag "
    "star rating social watermark seal payment".split()
)


@dataclass(frozen=True, slots=True)
class Selectors:
    """What to take, and what of it to leave out."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def address_of(page: Page, node: LexborNode) -> str:
    """The address of the largest version that an image names; empty if it has none."""
    said = next((node.attributes[name] for name in _SOURCES if node.attributes.get(name)), None)
    said = said or _largest(
        node.attributes.get("srcset") or node.attributes.get("data-srcset") or ""
    )
    said = said or node.attributes.get("src") or ""
    if not said or said.startswith("data:"):
        return ""
    try:
        return urljoin(page.base, said.strip())
    except ValueError:
        return ""


def _largest(srcset: str) -> str:
    best, best_size = "", -1.0
    for each in srcset.split(","):
        address, _, size = each.strip().partition(" ")
        number = float(size[:-1]) if re.fullmatch(r"\d+(\.\d+)?[wx]", size) else 0.0
        if address and number > best_size:
            best, best_size = address, number
    return best


def images_of(page: Page, selectors: Selectors) -> list[str]:
    """The images of a page's item, each once, in their order."""
    if not selectors.include:
        return []
    left_out = {node.mem_id for css in selectors.exclude for node in page.css(css)}
    found: dict[str, None] = {}
    for node in page.css(", ".join(selectors.include)):
        address = address_of(page, node) if node.mem_id not in left_out else ""
        if address:
            found[address] = None
    return list(found)


def learn_images(
    pages: Sequence[Page], steady: frozenset[str], flagged: Collection[str] = ()
) -> Selectors:
    """Selectors of the images that differ from page to page; `flagged` ones are never meant."""
    wanted = [_wanted(page, _repeated(pages), flagged) for page in pages]
    groups: Counter[tuple[str, ...]] = Counter()
    for nodes in wanted:
        groups.update({signature(node, steady) for node in nodes})
    include: list[str] = []
    for place, count in groups.most_common(MOST_SELECTORS):
        if count * 2 >= len(pages) or count >= 3:
            targets = [
                [node for node in nodes if signature(node, steady) == place] for nodes in wanted
            ]
            css = _way_to_all(pages, targets, wanted, steady)
            if css is not None and css not in include:
                include.append(css)
    return Selectors(tuple(include), tuple(_left_out(pages, include, wanted, steady)))


def _repeated(pages: Sequence[Page]) -> frozenset[str]:
    """Images on more than one page are of the site."""
    counts: Counter[str] = Counter()
    for page in pages:
        counts.update({address_of(page, node) for node in page.css("img")})
    return frozenset(address for address, count in counts.items() if count > 1)


def _wanted(page: Page, repeated: Collection[str], flagged: Collection[str]) -> list[LexborNode]:
    nodes = []
    for node in page.css("img"):
        address = address_of(page, node)
        if (
            address
            and address not in repeated
            and address not in flagged
            and not _is_ornament(node, address)
        ):
            nodes.append(node)
    return nodes


def _is_ornament(node: LexborNode, address: str) -> bool:
    """A logo, an icon, a banner: by its size, its names or its address."""
    for name in ("width", "height"):
        said = node.attributes.get(name) or ""
        if said.isdecimal() and int(said) < SMALLEST:
            return True
    named = [node.attributes.get("alt") or "", node.attributes.get("id") or "", *classes_of(node)]
    if node.parent is not None:
        named += classes_of(node.parent)
    words = {word for each in named[1:] for word in words_of_token(each).split()}
    file = urlsplit(address).path.rpartition("/")[2]
    return bool((words | set(words_of_token(file).split())) & _ORNAMENT)


def _way_to_all(
    pages: Sequence[Page],
    targets: Sequence[Sequence[LexborNode]],
    wanted: Sequence[Sequence[LexborNode]],
    steady: frozenset[str],
) -> str | None:
    """The selector that finds these images on all pages, with as few others as can be."""
    node = next((nodes[0] for nodes in targets if nodes), None)
    if node is None:
        return None
    best, best_mark = None, (-1.0, -1.0)
    for css in _candidates(node, steady):
        hits = extra = missed = 0
        for page, nodes, all_wanted in zip(pages, targets, wanted, strict=True):
            found = {each.mem_id for each in page.css(css)}
            meant, good = {each.mem_id for each in nodes}, {each.mem_id for each in all_wanted}
            hits += len(found & meant)
            extra += len(found - good)
            missed += len(meant - found)
        if not hits:
            continue
        mark = (hits / (hits + missed), hits / (hits + extra))
        if mark > best_mark:
            best, best_mark = css, mark
        if mark == (1.0, 1.0):
            break
    return best


def _candidates(node: LexborNode, steady: frozenset[str]) -> Iterator[str]:
    count = 0
    for css in dict.fromkeys(ways_to(node, steady)):
        if ":nth-of-type" not in css and count < MOST_WAYS:
            count += 1
            yield css
    parent = node.parent
    while parent is not None and parent.tag not in ("body", "html"):
        if len(list(children(parent))) > 1:
            for css in list(dict.fromkeys(ways_to(parent, steady)))[:20]:
                yield f"{css} img"
        parent = parent.parent


def _left_out(
    pages: Sequence[Page],
    include: Sequence[str],
    wanted: Sequence[Sequence[LexborNode]],
    steady: frozenset[str],
) -> Iterator[str]:
    """Selectors of what the others find and nobody wants, where there is one that spares the rest."""
    if not include:
        return
    extras: list[tuple[int, LexborNode]] = []
    good = [{node.mem_id for node in nodes} for nodes in wanted]
    for at, page in enumerate(pages):
        extras += [(at, n) for n in page.css(", ".join(include)) if n.mem_id not in good[at]]
    done: set[tuple[int, int]] = set()
    for at, node in extras:
        if (at, node.mem_id) in done:
            continue
        for css in dict.fromkeys([*_by_source(node), *ways_to(node, steady)]):
            found = [{each.mem_id for each in page.css(css)} for page in pages]
            if node.mem_id in found[at] and not any(
                f & g for f, g in zip(found, good, strict=True)
            ):
                done |= {(where, one) for where, ids in enumerate(found) for one in ids}
                yield css
                break


def _by_source(node: LexborNode) -> Iterator[str]:
    source = node.attributes.get("src") or ""
    if source and '"' not in source and not source.startswith("data:"):
        yield f'img[src="{source}"]'
