"""Validating: how well a schema reads pages that nothing was learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from penstock.agents.extract import Extracted, extract, type_of
from penstock.agents.learn.learn import Sample
from penstock.agents.schema import SiteSchema, Validation

# Each page has its own: one for all is a part of the site, not of an item.
DISTINCT = ("title", "vin", "sku")
MOST_PROBLEMS = 20


def validate(schema: SiteSchema, pages: Collection[Sample], asked: int, at: str) -> Validation:
    """The score of a schema on these pages; `asked` is how many were to be there.

    Each field that all pages should have counts on each page, and each other field where it is found: right
    if its selectors agree, wrong if they contradict each other or the field is missing.
    """
    read = [(page, extract(schema, page.url, page.html)) for page in pages]
    found = [(page.url, each) for page, each in read if each is not None]
    if not found:
        problem = "none of its pages of items could be fetched" if asked else "it has no such pages"
        return Validation(at, schema.version, 0.0, 0, problems=(problem,))
    right, wrong = Counter[str](), Counter[str]()
    problems: list[str] = []
    constant = _constant([each for _, each in found])
    for url, each in found:
        for name, ill in _judged(schema, url, each, constant):
            (wrong if ill else right)[name] += 1
            if ill:
                problems.append(f"{name} {ill} on {url}")
    judged = right.total() + wrong.total()
    # A page that is gone says nothing good of the schema, either.
    share = len(found) / max(asked, len(found))
    names = sorted({*right, *wrong})
    return Validation(
        at,
        schema.version,
        round(right.total() / judged * share if judged else 0.0, 3),
        len(found),
        {name: round(right[name] / (right[name] + wrong[name]), 3) for name in names},
        tuple(problems[:MOST_PROBLEMS]),
    )


def _judged(
    schema: SiteSchema, url: str, found: Extracted, constant: Collection[str]
) -> Iterable[tuple[str, str]]:
    """Each field that says something about the schema, and what is wrong with it, if anything is."""
    page_type = type_of(schema, url)
    for name, about in page_type[1].fields.items() if page_type else ():
        if name in constant:
            yield name, "is the same on all pages, as it is"
        elif name in found.disputed:
            yield name, "is disputed: its selectors disagree"
        elif found.data.get(name) not in (None, [], ""):
            yield name, ""
        elif about.required:
            yield name, "is missing"


def _constant(found: Collection[Extracted]) -> list[str]:
    """Fields that should tell items apart and do not."""

    def values(name: str) -> list[Any]:
        return [each.data[name] for each in found if each.data.get(name) is not None]

    return [name for name in DISTINCT if len(said := values(name)) > 2 and len(set(said)) == 1]
