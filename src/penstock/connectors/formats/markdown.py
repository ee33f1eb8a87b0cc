"""Markdown: its title, front matter and links."""

from __future__ import annotations

import re
from typing import Any

from penstock.connectors.formats.parsed import Parsed
from penstock.errors import ConfigError
from penstock.http.charset import decoded
from penstock.settings.document import read_value
from penstock.settings.section import plain

# No run is of any length: what may be tried at each place would make the whole quadratic.
_LINK = re.compile(r"\]\(\s{0,3}<?([^\s()<>]{1,2000})>?[^)\n]{0,200}\)")
_BARE = re.compile(r"<(https?://[^\s<>]{1,2000})>")
_WIKI = re.compile(r"\[\[([^\[\]|#\n]{1,500})")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.{1,500}?)[ \t#]*$", re.MULTILINE)
LONGEST_FRONT = 65_536


def read_markdown(body: bytes, name: str, url: str, content_type: str) -> Parsed:
    text = decoded(body, content_type)
    front, rest = front_matter(text)
    heading = _HEADING.search(rest[:20_000])
    title = front.get("title") or (heading and heading[1]) or name
    links = [found[1] for found in (*_LINK.finditer(rest), *_BARE.finditer(rest))]
    links += [f"[[{found[1].strip()}]]" for found in _WIKI.finditer(rest)]
    return Parsed(kind="markdown", title=str(title), text=rest.strip(), meta=front, links=links)


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The YAML between two lines of `---` at the top, and what follows; broken YAML is part of the text."""
    if not text.startswith(("---\n", "---\r\n")):
        return {}, text
    end = re.compile(r"^(---|\.\.\.)[ \t]*\r?$", re.MULTILINE).search(text, 4, LONGEST_FRONT)
    if end is None:
        return {}, text
    try:
        found = plain(read_value(text[4 : end.start()], "front matter"))
    except (ConfigError, RecursionError):
        return {}, text
    return (found, text[end.end() :]) if isinstance(found, dict) else ({}, text)
