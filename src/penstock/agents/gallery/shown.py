"""Shown: each image that the schema of a site takes for a photo of a page's item, and where it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urljoin

from selectolax.lexbor import LexborNode

from penstock.agents.extract import images_said, type_of
from penstock.agents.learn import addresses
from penstock.agents.learn.images import address_of
from penstock.agents.learn.learn import Sample
from penstock.agents.learn.page import Page, classes_of, steady_classes
from penstock.agents.learn.shown import Signature, signature
from penstock.agents.schema import PageType, SiteSchema

# A page that shows more images is not looked at beyond them.
MOST_ON_A_PAGE = 200


@dataclass(slots=True)
class Image:
    """An image on one page: all nodes that show it, and the place in the layout of the first."""

    page: int
    address: str
    selector: str
    place: Signature = ()
    nodes: list[LexborNode] = field(default_factory=list)


@dataclass(slots=True)
class Gallery:
    """All images of some pages. `steady` are the classes that most of the pages have."""

    pages: list[Page]
    images: list[Image]
    steady: frozenset[str]


def gallery_of(schema: SiteSchema, samples: Sequence[Sample]) -> Gallery:
    """The images of those pages that have a field for them."""
    pages: list[Page] = []
    found: list[Image] = []
    types: list[PageType] = []
    for sample in samples:
        known = type_of(schema, sample.url)
        if known is None or "images" not in known[1].fields:
            continue
        pages.append(_page(sample, known[1].url_pattern))
        types.append(known[1])
    for at, (page, page_type) in enumerate(zip(pages, types, strict=True)):
        found += _on_page(at, page, schema, page_type)
    # The layout that other pages share: without it, each page has places of its own.
    steady = steady_classes(pages)
    for image in found:
        image.place = signature(image.nodes[0], steady) if image.nodes else (image.selector,)
    return Gallery(pages, found, steady)


def _page(sample: Sample, pattern: str) -> Page:
    return Page(sample.url, sample.html, lambda link: addresses.matches(pattern, link))


def _on_page(at: int, page: Page, schema: SiteSchema, page_type: PageType) -> list[Image]:
    about = page_type.fields["images"]
    by_address: dict[str, Image] = {}
    if about.method == "css":
        for selector, node in _nodes(page, schema):
            address = address_of(page, node)
            if address:
                image = by_address.setdefault(address, Image(at, address, selector))
                image.nodes.append(node)
    else:
        for selector in about.selectors:
            for said in images_said(page, selector):
                address = _joined(page.base, said)
                by_address.setdefault(address, Image(at, address, selector))
    return [image for address, image in by_address.items() if address][:MOST_ON_A_PAGE]


def _nodes(page: Page, schema: SiteSchema) -> Iterator[tuple[str, LexborNode]]:
    left_out = {node.mem_id for css in schema.image_exclude_selectors for node in page.css(css)}
    for selector in schema.image_include_selectors:
        for node in page.css(selector):
            if node.mem_id not in left_out:
                yield selector, node


def _joined(base: str, said: str) -> str:
    try:
        return urljoin(base, said)
    except ValueError:
        return ""


def addresses_of(schema: SiteSchema, samples: Sequence[Sample], most: int = 120) -> list[str]:
    """Which images to fetch: those on most pages first, then one of each page in turn."""
    gallery = gallery_of(schema, samples)
    counts = Counter(image.address for image in gallery.images)
    repeated = [address for address, count in counts.most_common() if count > 1]
    by_page: list[list[str]] = [[] for _ in gallery.pages]
    for image in gallery.images:
        by_page[image.page].append(image.address)
    in_turn = [
        each[at]
        for at in range(max(map(len, by_page), default=0))
        for each in by_page
        if at < len(each)
    ]
    return list(dict.fromkeys([*repeated, *in_turn]))[:most]


def words_around(image: Image) -> list[str]:
    """The classes and ids of an image and of what directly holds it."""
    found: list[str] = []
    for node in image.nodes:
        for each in (node, node.parent):
            if each is not None and each.tag not in ("body", "main", "html"):
                found += [*classes_of(each), each.attributes.get("id") or ""]
    return found
