"""What a page of the demo site answers: well, badly, or not at all."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field

HTML = "text/html; charset=utf-8"
XML = "application/xml; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response."""

    body: bytes
    status: int = 200
    content_type: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing: the connection stays open and silent until the client gives up."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Half of a body, then a closed connection."""

    body: bytes


Reply = Answer | Hang | Drop
# One reply per visit; the last one is for every visit after it.
Page = tuple[Reply, ...]
Pages = dict[str, Page]


def reply_to(page: Page, visit: int) -> Reply:
    """The reply to this visit of a page; the first visit is 1."""
    return page[min(visit, len(page)) - 1]


def document(title: str, body: str, head: str = "") -> bytes:
    """A small HTML page; `head` and `body` are markup, the title is text."""
    return (
        f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{html.escape(title)}"
        f"</title>{head}</head>\n<body>{body}</body></html>\n"
    ).encode()


def robots(*lines: str) -> Page:
    text = "\n".join(("User-agent: *", *lines, ""))
    return (Answer(text.encode(), content_type="text/plain; charset=utf-8"),)
