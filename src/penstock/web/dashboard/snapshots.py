"""Fetched pages, to be looked at: a frame without scripts, links or an origin, and the text as it came.

A page is never a document of the dashboard's origin: it stands in the `srcdoc` of a frame whose `sandbox` is
empty, under the dashboard's own policy, or it is downloaded.
"""

from __future__ import annotations

from typing import Any

import msgspec
from selectolax.lexbor import LexborHTMLParser
from starlette.responses import Response

from penstock.app.views.pages import is_text

# Of a longer page, the beginning is shown; the download has all of it.
LONGEST = 400_000
# What could run, or ask another host for something, even without scripts.
REMOVED = [
    "script",
    "link",
    "meta",
    "base",
    "iframe",
    "frame",
    "object",
    "embed",
    "portal",
    "template",
]


class ShownPage(msgspec.Struct, frozen=True):
    """The body of a page: as HTML to be shown in a sandbox, if it is HTML, and as text, if it is text."""

    html: str | None
    text: str | None
    bytes: int
    is_cut: bool


def shown_page(response: Any) -> ShownPage:
    """How a page that `pages.read` answers with is shown."""
    text = response.text if is_text(response) else None
    is_cut = text is not None and len(text) > LONGEST
    if is_cut and text is not None:
        text = text[:LONGEST]
    html = _harmless(text) if text is not None and "html" in response.content_type else None
    return ShownPage(html, text, len(response.body), is_cut)


def _harmless(text: str) -> str:
    tree = LexborHTMLParser(text)
    for name in REMOVED:
        for node in tree.css(name):
            node.decompose()
    return tree.html or ""


def download(response: Any, name: str) -> Response:
    """The body as a file: no browser shows it as a page, whatever it contains."""
    return Response(
        response.body,
        media_type="application/octet-stream",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        },
    )
