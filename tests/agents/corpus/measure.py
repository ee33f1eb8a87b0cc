"""Measuring extraction against the truth: precision and recall by field, before and after the redesigns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.agents.extract import extract
from penstock.agents.learn.learn import Sample, learn
from penstock.agents.learn.page import Page
from penstock.agents.learn.sampling import sample_of
from penstock.agents.schema import SiteSchema
from penstock.connectors.formats.html import links_of
from tests.agents.corpus.sites import Site

Read = Callable[[str, str], Mapping[str, Any] | None]


@dataclass
class Figures:
    """What was right, what was said and wrong, and what was missed; with each mistake."""

    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    mistakes: list[tuple[str, str, Any, Any]] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        self.right += other.right
        self.wrong += other.wrong
        self.missed += other.missed
        self.mistakes += other.mistakes

    @property
    def precision(self) -> float:
        said = self.right.total() + self.wrong.total()
        return self.right.total() / said if said else 1.0

    @property
    def recall(self) -> float:
        true = self.right.total() + self.missed.total()
        return self.right.total() / true if true else 1.0


def addresses_on(site: Site) -> list[str]:
    """Every address that the home page and the lists lead to."""
    found: dict[str, None] = {site.home: None}
    for url in list(site.pages):
        if url == site.home or "/list" in url:
            links = links_of(Page(url, site.pages[url]).tree, url)
            found.update(dict.fromkeys(link for link in links if link in site.pages))
    return list(found)


def samples_of(site: Site) -> list[Sample]:
    return [Sample(url, site.pages[url]) for url in sample_of(addresses_on(site))]


def learned(site: Site, known: Mapping[str, Mapping[str, Any]] | None = None) -> SiteSchema:
    return learn(samples_of(site), urls=addresses_on(site), known=known).schema


def by_schema(schema: SiteSchema) -> Read:
    def read(url: str, html: str) -> Mapping[str, Any] | None:
        found = extract(schema, url, html)
        return None if found is None else found.data

    return read


def measure(site: Site, read: Read, left_out: frozenset[str] = frozenset()) -> Figures:
    """All pages that nothing was learned from; a page that is not of an item has nothing to be said."""
    figures = Figures()
    for url, html in site.pages.items():
        if url in left_out:
            continue
        said = {name: v for name, v in (read(url, html) or {}).items() if v not in (None, [], "")}
        _compare(figures, url, site.truth.get(url, {}), said)
    return figures


def _compare(figures: Figures, url: str, truth: Mapping[str, Any], said: Mapping[str, Any]) -> None:
    for name in {*truth, *said}:
        if name in said and _same(truth.get(name), said[name]):
            figures.right[name] += 1
            continue
        if name in said:
            figures.wrong[name] += 1
        if name in truth:
            figures.missed[name] += 1
        figures.mistakes.append((url, name, truth.get(name), said.get(name)))


def _same(true: Any, said: Any) -> bool:
    if isinstance(true, list):
        return isinstance(said, list) and set(true) == set(said)
    if isinstance(true, str) and isinstance(said, str):
        return true.casefold() == said.casefold()
    return bool(true == said)
