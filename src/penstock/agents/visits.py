"""Visits: which pages of a site are fetched to learn it, and which are left for checking what was learned."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from penstock.agents.learn import addresses
from penstock.agents.learn.learn import Sample
from penstock.agents.learn.sampling import HELD_OUT, MOST_TYPES, PER_TYPE, held_out_of, spread
from penstock.agents.schema import SchemaData
from penstock.agents.site import Site
from penstock.connectors.contract import Item
from penstock.connectors.formats.html import links_of, parsed_tree

# A sitemap may have millions; these tell the types of pages apart.
MOST_ADDRESSES = 20_000
BATCH = 8


@dataclass
class Visited:
    """The pages that were fetched, and every address of the site that was seen."""

    urls: dict[str, int] = field(default_factory=dict)
    pages: dict[str, Sample] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)

    @property
    def samples(self) -> list[Sample]:
        return list(self.pages.values())

    def held_out(self, data: SchemaData) -> tuple[str, ...]:
        """Pages of items that nothing was learned from, in the order in which they are to be asked for."""
        found: list[str] = []
        for page_type in data.page_types.values():
            if page_type.fields:
                members = [
                    url for url in self.urls if addresses.matches(page_type.url_pattern, url)
                ]
                found += held_out_of(self.urls, members, self.pages, HELD_OUT)
        return tuple(found)


async def visit(site: Site, most: int) -> Visited:
    """Fetch some pages of each type, spread over the site; where it has links, follow them on the way."""
    visited = Visited()
    async for found in site.web.discover(site.ctx, {}):
        if isinstance(found, Item) and len(visited.urls) < MOST_ADDRESSES:
            visited.urls.setdefault(found.address, 0)
    first = [home] if (home := _home(visited)) else []
    if site.web.start:
        first = list(dict.fromkeys([next(iter(visited.urls)), *first]))
    await _fetch(site, visited, first)
    while len(visited.tried) < most:
        wanted = _next(visited, min(BATCH, most - len(visited.tried)))
        if not wanted:
            break
        await _fetch(site, visited, wanted)
    return visited


def _home(visited: Visited) -> str:
    """The home page says what a site is, whether or not its sitemap lists it."""
    if not visited.urls:
        return ""
    parts = urlsplit(next(iter(visited.urls)))
    return f"{parts.scheme}://{parts.netloc}/"


def _next(visited: Visited, most: int) -> list[str]:
    """Of each type the next pages, those of large types first; some of each are left to check with."""
    groups = addresses.patterns_of([*visited.urls, *visited.tried])
    ranked = sorted(groups.items(), key=lambda each: (-len(each[1]), each[0]))[:MOST_TYPES]
    chosen: list[str] = []
    for _, members in ranked:
        enough = min(PER_TYPE, max(3, len(members) - HELD_OUT))
        had = sum(url in visited.tried for url in members)
        new = [url for url in spread(members, "") if url not in visited.tried]
        chosen += new[: max(0, enough - had)]
    return chosen[:most]


async def _fetch(site: Site, visited: Visited, urls: list[str]) -> None:
    visited.tried.update(urls)
    found = await site.pages(urls)
    visited.pages.update(found)
    if not site.web.start:
        return
    for url, page in found.items():
        depth = visited.urls.get(url, 0)
        if depth >= site.web.settings.depth:
            continue
        links = list(links_of(parsed_tree(page.html)[0], url))
        for link in site.web.followed(site.ctx, links, Counter()):
            if len(visited.urls) < MOST_ADDRESSES:
                visited.urls.setdefault(link, depth + 1)
