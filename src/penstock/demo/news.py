"""The newspaper: an RSS feed of 40 entries and the article behind each.

Three of the articles are advertisements, and one is announced before it is written.
"""

from __future__ import annotations

import html
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from penstock.demo.replies import Answer, Page, Pages, document, robots

ARTICLES = 40
SPONSORED = frozenset({9, 21, 33})
UNWRITTEN = frozenset({17})

FIRST_PUBLISHED = datetime(2024, 3, 1, 6, 30, tzinfo=UTC)
SUBJECTS = ("The old mill", "A river ferry", "The town clock", "A night train", "The lighthouse")
EVENTS = (
    *("opens again", "is up for sale", "stops for repairs", "wins a prize"),
    *("turns a hundred", "gets a new keeper", "is painted blue", "loses its roof"),
)
AUTHORS = ("Ada Marsh", "Jonas Weir", "Lin Okafor", "Petra Sluys")


def pages(origin: str) -> Pages:
    """The feed and its articles, as they are served under this origin."""
    paper: Pages = {
        "/robots.txt": robots("Allow: /"),
        "/feed.xml": _feed(origin),
    }
    for number in range(1, ARTICLES + 1):
        paper[f"/articles/{number}"] = (Answer(article_page(number)),)
    return paper


def headline(number: int) -> str:
    return f"{SUBJECTS[number % len(SUBJECTS)]} {EVENTS[number % len(EVENTS)]}"


def canonical_url(number: int) -> str:
    """The address the paper is known by, whatever port it is served from today."""
    return f"https://news.example/articles/{number}"


def article_page(number: int) -> bytes:
    label = "<span class=sponsored>Advertisement</span>" if number in SPONSORED else ""
    return document(
        headline(number),
        f"<article>{label}<h1>{html.escape(headline(number))}</h1>"
        f"<p class=byline>{AUTHORS[number % len(AUTHORS)]}</p>{_paragraphs(number)}</article>",
        head=f'<link rel=canonical href="{canonical_url(number)}">',
    )


def _paragraphs(number: int) -> str:
    if number in UNWRITTEN:
        return ""
    first = f"{headline(number)}, the council said on day {number} of the season."
    return f"<p class=text>{first}</p><p class=text>Nobody in town was surprised.</p>"


def _feed(origin: str) -> Page:
    entries = "\n".join(_entry(origin, number) for number in range(ARTICLES, 0, -1))
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"><channel>\n'
        f"<title>The Weir Gazette</title><link>{origin}/</link>"
        f"<description>News of a small town</description>\n{entries}\n</channel></rss>\n"
    )
    return (Answer(text.encode(), content_type="application/rss+xml; charset=utf-8"),)


def _entry(origin: str, number: int) -> str:
    published = format_datetime(FIRST_PUBLISHED + timedelta(hours=7 * number))
    return (
        f"<item><title>{html.escape(headline(number))}</title>"
        f"<link>{origin}/articles/{number}</link>"
        f'<guid isPermaLink="false">{canonical_url(number)}</guid>'
        f"<pubDate>{published}</pubDate></item>"
    )
