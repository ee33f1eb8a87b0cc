"""Searches: result pages as a list of hits, by SearxNG, by any JSON, or from a local index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from penstock.builder.company import Company
from penstock.builder.enrich.requests import Ask, mapping, rows, with_query, words_of
from penstock.builder.normalize import urls
from penstock.builder.normalize.names import name_words
from penstock.builder.normalize.text import clean

MOST = 10


class Hit(msgspec.Struct, frozen=True):
    """One result of a search."""

    url: str
    title: str = ""
    snippet: str = ""


class SearchProvider(Protocol):
    """Asks for a query and reads the hits."""

    def ask(self, query: str) -> Ask: ...

    def read(self, answer: Any) -> list[Hit]: ...


class Searx:
    """SearxNG with its JSON format switched on: `GET /search?q=…&format=json`."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    def ask(self, query: str) -> Ask:
        return Ask(with_query(self._base_url, "/search", q=query, format="json"))

    def read(self, answer: Any) -> list[Hit]:
        return hits_of(rows(mapping(answer).get("results")), "url", "title", "content")


class GenericJson:
    """Any API that answers with a list: `{query}` in the address, and a path of names to the list."""

    def __init__(
        self,
        url_template: str,
        results: str = "results",
        names: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._url_template = url_template
        self._path = [part for part in results.removeprefix("$").split(".") if part]
        self._names = {"url": "url", "title": "title", "snippet": "snippet", **(names or {})}
        self._headers = dict(headers or {})

    def ask(self, query: str) -> Ask:
        return Ask(
            self._url_template.replace("{query}", quote(query, safe="")), headers=self._headers
        )

    def read(self, answer: Any) -> list[Hit]:
        for part in self._path:
            answer = mapping(answer).get(part)
        return hits_of(rows(answer), *(self._names[name] for name in ("url", "title", "snippet")))


class LocalIndex:
    """Hits from a list in memory, those with the most words of the query first. It asks nobody."""

    def __init__(self, hits: Iterable[Hit | Mapping[str, Any]]) -> None:
        self._hits = [
            each if isinstance(each, Hit) else msgspec.convert(each, Hit) for each in hits
        ]
        self._by_word: dict[str, list[int]] = {}
        for number, hit in enumerate(self._hits):
            for word in set(name_words(f"{hit.title} {hit.snippet}"[:2000])):
                self._by_word.setdefault(word, []).append(number)

    def search(self, query: str) -> list[Hit]:
        counts: dict[int, int] = {}
        for word in set(name_words(query)):
            for number in self._by_word.get(word, []):
                counts[number] = counts.get(number, 0) + 1
        best = sorted(counts, key=lambda number: (-counts[number], number))
        return [self._hits[number] for number in best[:MOST]]


def hits_of(found: list[dict[str, Any]], url: str, title: str, snippet: str) -> list[Hit]:
    """The hits of a list of objects whose fields have these names; one without an address is none."""
    made = []
    for row in found[:MOST]:
        address = urls.web_url(row.get(url))
        if address is not None:
            made.append(
                Hit(address, clean(row.get(title), 300) or "", clean(row.get(snippet), 500) or "")
            )
    return made


def query_of(company: Company, template: str = "{name} {city}") -> str:
    """The query for a company: `{field}` is its value, or nothing."""
    query = template[:300]
    for field in ("name", "street", "city", "postcode", "region", "country", "category"):
        if f"{{{field}}}" in query:
            query = query.replace(f"{{{field}}}", words_of(company, field) or "")
    return " ".join(query.split())
