"""What pages say to machines: JSON-LD, microdata, OpenGraph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.agents.learn.evidence import Evidence, evidence_of
from penstock.agents.learn.page import Page
from penstock.agents.learn.structured import kinds_on, paths_of, the_thing, things_of
from penstock.agents.learn.values import shared_start
from penstock.agents.learn.vocabulary import FIELDS, said_as

TRUST = {"json-ld": 0.94, "microdata": 0.94, "opengraph": 0.8}
SEPARATORS = ("|", " - ", " – ", " — ", " · ", " :: ", " « ", " » ")
_META = {
    "og:price:amount": "price",
    "product:price:amount": "price",
    "og:price:currency": "currency",
    "product:price:currency": "currency",
}


def structured(pages: Sequence[Page]) -> Iterator[Evidence]:
    """Fields of the things that pages are about, whatever type these have."""
    for method in ("json-ld", "microdata"):
        for kind in _kinds(pages, method):
            paths: dict[str, None] = {}
            for page in pages:
                thing = the_thing(page, things_of(page, method), kind)
                paths.update(dict.fromkeys(paths_of(thing) if thing is not None else ()))
            for path in paths:
                about = said_as(path)
                if about is not None and about.kind != "images":
                    selector = f"{method}:{kind}/{path}"
                    yield evidence_of(pages, about, selector, TRUST[method])


def _kinds(pages: Sequence[Page], method: str) -> list[str]:
    """Types of things on at least half of the pages, and not the same thing on all of them."""
    found: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for page in pages:
        for kind in kinds_on(page, method):
            thing = the_thing(page, things_of(page, method), kind) or {}
            found.setdefault(kind, set()).add(str(thing.get("name") or thing.get("headline")))
            counts[kind] = counts.get(kind, 0) + 1
    usual = [kind for kind in found if counts[kind] * 2 >= len(pages) and len(found[kind]) > 1]
    return sorted(usual, key=lambda kind: (-counts[kind], kind))


def images_said(pages: Sequence[Page]) -> Iterator[str]:
    """Selectors of images in structured data, those first that more pages have."""
    for method in ("json-ld", "microdata"):
        for kind in _kinds(pages, method):
            if any("image" in (the_thing(p, things_of(p, method), kind) or {}) for p in pages):
                yield f"{method}:{kind}/image"
    addresses = {page.graph["og:image"] for page in pages if page.graph.get("og:image")}
    if len(addresses) > 1:
        yield "meta:og:image"


def meta(pages: Sequence[Page]) -> Iterator[Evidence]:
    """OpenGraph, and the title of the window as the last resort."""
    for name, field in _META.items():
        if any(name in page.graph for page in pages):
            yield evidence_of(pages, FIELDS[field], f"meta:{name}", TRUST["opengraph"])
    for name, trust in (("og:title", TRUST["opengraph"]), ("title", 0.6)):
        titles = [page.graph.get(name, "") for page in pages]
        if all(titles) and len(set(titles)) > 1:
            ending = _ending(titles)
            selector = f"meta:{name}|{ending}" if ending else f"meta:{name}"
            yield evidence_of(pages, FIELDS["title"], selector, trust)
    texts = [page.graph.get("og:description", "") for page in pages]
    if len(set(texts)) > len(pages) // 2 and min(map(len, texts)) > 0:
        yield evidence_of(pages, FIELDS["description"], "meta:og:description", 0.5)


def _ending(titles: Sequence[str]) -> str:
    """What all titles end with, from its first separator on: the name of the site."""
    common = shared_start([title[::-1] for title in titles])[::-1]
    starts = [common.find(separator) for separator in SEPARATORS if separator in common]
    if not starts:
        return ""
    ending = common[min(starts) :]
    return ending if any(title != ending for title in titles) else ""
