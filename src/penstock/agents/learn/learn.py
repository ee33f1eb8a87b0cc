"""Learning a site: from sampled pages to its schema."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.agents.learn import addresses, said, shown
from penstock.agents.learn.classify import Classified, classify, name_of_site
from penstock.agents.learn.decide import Decided, decide
from penstock.agents.learn.evidence import Evidence
from penstock.agents.learn.images import Selectors, images_of, learn_images
from penstock.agents.learn.page import Page, site_of, steady_classes
from penstock.agents.learn.selectors import method_of
from penstock.agents.schema import FieldSchema, PageType, SchemaData, SiteSchema

# From how many pages of a type on its fields can be told from what is the same on all.
FEWEST_PAGES = 3
# So many say what the site is.
PAGES_READ = 4
# What makes a page one about an item: a title and at least one fact.
NO_FACTS = frozenset({"title", "description", "images"})


class Sample(msgspec.Struct, frozen=True):
    """A page as it was fetched."""

    url: str
    html: str


@dataclass
class Learned:
    """A schema, and what a person should know about how it was found."""

    schema: SiteSchema
    conflicts: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)


def learn(
    samples: Sequence[Sample],
    *,
    urls: Collection[str] = (),
    known: Mapping[str, Mapping[str, Any]] | None = None,
    flagged: Collection[str] = (),
) -> Learned:
    """The schema of the site that these pages are of.

    `urls` are more addresses of the site, which tell types of pages apart. `known` are values that were
    found before, by address; `flagged` are images that are not of an item.
    """
    patterns = _patterns([each.url for each in samples], urls)
    found: dict[str, PageType] = {}
    conflicts: dict[str, dict[str, list[dict[str, Any]]]] = {}
    selectors = Selectors()
    for pattern, members in patterns.items():
        those = [each for each in samples if each.url in members]
        learned = _page_type(pattern, those, known or {}, flagged)
        name = _name(learned, members, found)
        found[name] = learned.page_type
        if learned.decided.conflicts:
            conflicts[name] = learned.decided.conflicts
        if not selectors.include and learned.page_type.fields:
            selectors = learned.images
    # The home page first, then those that have none like them: there a site says what it is.
    telling = sorted(samples, key=lambda each: (len(_like(patterns, each.url)), each.url))
    whole = [Page(each.url, each.html) for each in telling[:PAGES_READ]]
    return Learned(_schema(samples, found, selectors, classify(whole), whole), conflicts)


def _like(patterns: Mapping[str, list[str]], url: str) -> list[str]:
    return next((members for members in patterns.values() if url in members), [])


def _patterns(sampled: Sequence[str], others: Collection[str]) -> dict[str, list[str]]:
    """The patterns of pages that were sampled, those with most addresses first."""
    groups = addresses.patterns_of([*sampled, *others])
    own = set(sampled)
    ranked = sorted(groups.items(), key=lambda each: (-len(each[1]), each[0]))
    return {
        pattern: kept for pattern, members in ranked if (kept := [u for u in members if u in own])
    }


@dataclass
class _TypeLearned:
    page_type: PageType
    images: Selectors
    decided: Decided


def _page_type(
    pattern: str,
    samples: Sequence[Sample],
    known: Mapping[str, Mapping[str, Any]],
    flagged: Collection[str],
) -> _TypeLearned:
    if len(samples) < FEWEST_PAGES:
        return _TypeLearned(PageType(pattern), Selectors(), Decided())
    pages = [
        Page(each.url, each.html, lambda url: addresses.matches(pattern, url)) for each in samples
    ]
    steady = steady_classes(pages)
    decided = decide(
        _evidence(pages, steady, [known.get(page.url, {}) for page in pages]), len(pages)
    )
    if "title" not in decided.fields or not set(decided.fields) - NO_FACTS:
        return _TypeLearned(PageType(pattern), Selectors(), Decided())
    images = learn_images(pages, steady, flagged)
    fields = dict(decided.fields)
    pictures = _images(pages, images, flagged)
    if pictures is not None:
        fields["images"] = pictures
    return _TypeLearned(PageType(pattern, fields), images, decided)


def _evidence(
    pages: Sequence[Page], steady: frozenset[str], known: Sequence[Mapping[str, Any]]
) -> list[Evidence]:
    slots = shown.slots_of(pages, steady)
    return [
        *said.structured(pages),
        *shown.labels(pages, steady, known),
        *shown.named_slots(pages, steady, slots),
        *shown.alike_slots(pages, steady, slots),
        *shown.formed(pages, steady, slots),
        *shown.known_before(pages, steady, known),
        *shown.prose(pages, steady),
        *said.meta(pages),
    ]


def _images(
    pages: Sequence[Page], selectors: Selectors, flagged: Collection[str]
) -> FieldSchema | None:
    """The field of images: what is shown, or what structured data says where nothing else tells."""
    found = [images_of(page, selectors) for page in pages]
    present = sum(bool(each) for each in found)
    if selectors.include and present * 2 >= len(pages):
        ways = tuple(f"css:{each}" for each in selectors.include)
        required = present >= 0.95 * len(pages)
        return FieldSchema(ways, "css", required, round(0.9 * present / len(pages), 3))
    for way in said.images_said(pages):
        return FieldSchema((way,), method_of(way), False, 0.7)  # type: ignore[arg-type]
    return None


def _name(learned: _TypeLearned, urls: Sequence[str], taken: Collection[str]) -> str:
    """`item` for pages about one thing each, `home`, `list` for pages like each other, else `page`."""
    if learned.page_type.fields:
        name = "item"
    elif [addresses.path_of(url) for url in urls] == ["/"]:
        name = "home"
    else:
        name = "list" if len(urls) > 1 else "page"
    if name not in taken:
        return name
    return next(f"{name}_{at}" for at in range(2, 1000) if f"{name}_{at}" not in taken)


def _schema(
    samples: Sequence[Sample],
    page_types: dict[str, PageType],
    selectors: Selectors,
    classified: Classified,
    pages: Sequence[Page],
) -> SiteSchema:
    fields = [each for page_type in page_types.values() for each in page_type.fields.items()]
    return SiteSchema(
        domain=site_of(samples[0].url) if samples else "",
        site_name=name_of_site(pages),
        site_type=classified.site_type,
        classification_confidence=classified.confidence,
        schema_data=SchemaData(
            page_types,
            tuple(dict.fromkeys(name for name, _ in fields)),
            tuple(dict.fromkeys(name for name, about in fields if about.required)),
        ),
        image_include_selectors=selectors.include,
        image_exclude_selectors=selectors.exclude,
        extraction_confidence=confidence_of(page_types),
    )


def confidence_of(page_types: Mapping[str, PageType]) -> float | None:
    """Over all: that of the fields, where those that every page has weigh twice."""
    fields = [each for page_type in page_types.values() for each in page_type.fields.values()]
    weight = sum(2.0 if each.required else 1.0 for each in fields)
    total = sum(each.confidence * (2.0 if each.required else 1.0) for each in fields)
    return round(total / weight, 3) if fields else None
