"""XML from strangers, read row by row.

A document type is refused the moment it begins, before anything in it can be declared, fetched or
expanded; no network, no entities, bounded depth. Works on chunks and keeps only the row at hand,
so a sitemap of any length needs no more memory than one of its entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from lxml import etree

MAX_DEPTH = 200


class BadXml(ValueError):
    """Not well-formed, not what was expected, or with a document type."""


@dataclass(slots=True)
class Field:
    """A child of a row with all the text in it; `tag` is `{namespace}name`."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass(slots=True)
class Row:
    """One repeated element of a document: a sitemap's url, a feed's entry."""

    name: str
    attributes: dict[str, str]
    fields: list[Field] = field(default_factory=list)


def read_rows(
    chunks: Iterable[bytes], roots: frozenset[str], names: frozenset[str]
) -> Iterator[Row]:
    """The rows of these names, as they come. Raises BadXml after the last one that was whole."""
    rows = _Rows(roots, names)
    parser = etree.XMLParser(
        target=cast(Any, rows),
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        no_network=True,
        huge_tree=False,
    )
    try:
        for chunk in chunks:
            parser.feed(chunk)
            yield from rows.take()
        parser.close()
    except etree.XMLSyntaxError as error:
        yield from rows.take()
        raise BadXml(f"not well-formed XML ({error.msg})") from None
    yield from rows.take()


def local_name(tag: str) -> str:
    return tag.rpartition("}")[2]


class _Rows:
    """The parser's target: builds rows, drops everything around them."""

    def __init__(self, roots: frozenset[str], names: frozenset[str]) -> None:
        self._roots = roots
        self._names = names
        self._depth = 0
        self._row_depth = 0
        self._row: Row | None = None
        self._text: list[str] = []
        self._done: list[Row] = []

    def take(self) -> list[Row]:
        done, self._done = self._done, []
        return done

    def doctype(self, *_: object) -> None:
        raise BadXml("a document type is not accepted")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        name = local_name(tag)
        if self._depth > MAX_DEPTH:
            raise BadXml("nested too deeply")
        if self._depth == 1 and name not in self._roots:
            raise BadXml(f"a document of <{name[:40]}> where {_listed(self._roots)} was expected")
        if self._row is None:
            if name in self._names and self._depth > 1:
                self._row, self._row_depth = Row(name, dict(attributes)), self._depth
        elif self._depth == self._row_depth + 1:
            self._row.fields.append(Field(tag, dict(attributes)))
            self._text.clear()

    def data(self, text: str) -> None:
        if self._row is not None and self._depth > self._row_depth:
            self._text.append(text)

    def end(self, _tag: str) -> None:
        if self._row is not None:
            if self._depth == self._row_depth + 1:
                self._row.fields[-1].text = "".join(self._text).strip()
            elif self._depth == self._row_depth:
                self._done.append(self._row)
                self._row = None
        self._depth -= 1

    def close(self) -> None:
        return None


def _listed(names: frozenset[str]) -> str:
    return " or ".join(f"<{name}>" for name in sorted(names))
