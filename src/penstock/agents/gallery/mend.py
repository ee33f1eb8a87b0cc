"""Mending: selectors that exclude what was flagged, and spare every image that was not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from selectolax.lexbor import LexborNode

from penstock.agents.gallery.judge import Spot, spot_of
from penstock.agents.gallery.shown import Gallery, Image
from penstock.agents.learn.page import Page
from penstock.agents.learn.selectors import ways_to

MOST_SELECTORS, MOST_WAYS, MOST_TRIED = 3, 60, 3
_SOURCES = ("src", "data-src", "data-full", "data-original", "data-lazy", "data-lazy-src")


def excludes(
    gallery: Gallery, flagged: Sequence[Image], all_flagged: Mapping[Spot, object]
) -> tuple[str, ...]:
    """A few selectors that find these images; fewer than all where any would find one that is right."""
    good: set[tuple[int, int]] = set()
    for image in gallery.images:
        if spot_of(image) not in all_flagged:
            good |= _nodes_of(image)
    left = {node for image in flagged for node in _nodes_of(image)}
    nodes = {(image.page, node.mem_id): node for image in flagged for node in image.nodes}
    chosen: list[str] = []
    while left and len(chosen) < MOST_SELECTORS:
        best, best_found = "", frozenset[tuple[int, int]]()
        for css in _ways(nodes, sorted(left), gallery.steady):
            found = frozenset(_found(gallery.pages, css))
            if not found & good and len(found & left) > len(best_found):
                best, best_found = css, found & left
        if not best:
            break
        chosen.append(best)
        left -= best_found
    return tuple(chosen)


def _nodes_of(image: Image) -> set[tuple[int, int]]:
    return {(image.page, node.mem_id) for node in image.nodes}


def _found(pages: Sequence[Page], css: str) -> Iterator[tuple[int, int]]:
    for at, page in enumerate(pages):
        for node in page.css(css):
            yield at, node.mem_id


def _ways(
    nodes: Mapping[tuple[int, int], LexborNode],
    left: Sequence[tuple[int, int]],
    steady: frozenset[str],
) -> Iterator[str]:
    """Ways to the first, the middle and the last of them, those first that say what they are."""
    some = dict.fromkeys([left[0], left[len(left) // 2], left[-1]])
    ways: dict[str, None] = {}
    for each in list(some)[:MOST_TRIED]:
        own = dict.fromkeys([*ways_to(nodes[each], steady), *_by_source(nodes[each])])
        ways.update(dict.fromkeys(list(own)[:MOST_WAYS]))
    by_place = [css for css in ways if ":nth-of-type" in css]
    yield from (css for css in ways if ":nth-of-type" not in css)
    yield from by_place


def _by_source(node: LexborNode) -> Iterator[str]:
    """By the folder of the image, then by the image itself."""
    for name in _SOURCES:
        said = node.attributes.get(name) or ""
        if not said or any(sign in said for sign in '"\\\n') or said.startswith("data:"):
            continue
        folder = urlsplit(said).path.rpartition("/")[0]
        if folder.strip("/"):
            yield f'img[{name}*="{folder}/"]'
        yield f'img[{name}="{said}"]'
