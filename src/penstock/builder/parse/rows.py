"""Rows of a page: from its JSON-LD, its microdata, and its tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from penstock.builder.enrich.site import MOST_BYTES, organization_facts, organizations
from penstock.builder.normalize.standardize import column_fields
from penstock.builder.normalize.text import clean
from penstock.connectors.formats.html import parsed_tree

MOST_ROWS = 1_000
MOST_TABLES = 20
MOST_CELLS = 50
# A table lists companies if its header has a name and one of these.
_TELLING = frozenset("street address city postcode phone email website legal_id".split())


def jsonld_rows(html: str | bytes, url: str) -> list[dict[str, Any]]:
    """The organisations that a page describes as JSON-LD."""
    return _described(_tree(html), "json-ld")


def html_rows(html: str | bytes, url: str) -> list[dict[str, Any]]:
    """The organisations that a page marks as microdata, and the rows of its tables of companies."""
    tree = _tree(html)
    return [*_described(tree, "microdata"), *_table_rows(tree)][:MOST_ROWS]


def _tree(html: str | bytes) -> LexborHTMLParser:
    text = html.decode("utf-8", "replace") if isinstance(html, bytes) else html
    return parsed_tree(text[:MOST_BYTES])[0]


def _described(tree: LexborHTMLParser, source: str) -> list[dict[str, Any]]:
    found = (organization_facts(thing) for kind, thing in organizations(tree) if kind == source)
    return [row for row in found if row.get("name")]


def _table_rows(tree: LexborHTMLParser) -> Iterator[dict[str, Any]]:
    for table in tree.css("table")[:MOST_TABLES]:
        # One that holds others lays out a page, and lists nothing.
        lines = [] if len(table.css("table")) > 1 else table.css("tr")[: MOST_ROWS + 1]
        fields = column_fields(_cells(lines[0])) if lines else []
        if "name" not in fields or not _TELLING & set(fields):
            continue
        for line in lines[1:]:
            cells = zip(fields, _cells(line), strict=False)
            row = {field: text for field, text in cells if field is not None and text is not None}
            if "name" in row:
                yield row


def _cells(line: LexborNode) -> list[str | None]:
    return [clean(cell.text(separator=" ")) for cell in line.css("th, td")[:MOST_CELLS]]
