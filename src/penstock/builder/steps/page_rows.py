"""Rows of companies in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from penstock.builder.normalize import urls
from penstock.builder.parse.rows import html_rows, jsonld_rows
from penstock.builder.steps.place import ROW

Found = dict[str, Any]


async def parse_html(page: Found) -> AsyncIterator[Found]:
    """Companies in microdata and tables."""
    for row in _rows(page, html_rows, "html"):
        yield row


async def parse_jsonld(page: Found) -> AsyncIterator[Found]:
    """Companies in JSON-LD."""
    for row in _rows(page, jsonld_rows, "json-ld"):
        yield row


def _rows(page: Found, read: Callable[[str, str], list[Found]], how: str) -> Iterator[Found]:
    # A page about others is believed as a list is, however it marks what it says.
    source = f"page:{urls.host_of(page['url']) or 'page'}"
    for number, row in enumerate(read(page["html"], page["url"]), 1):
        yield {
            "kind": ROW,
            "key": f"{page['url']} {how} {number}",
            "source": source,
            "row": row,
        }
