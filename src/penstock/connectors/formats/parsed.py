"""What a format makes of bytes."""

from __future__ import annotations

from typing import Any

import msgspec

# What one record holds of a text, of a table and of a JSON value; the snapshot has all of it.
MOST_TEXT = 1_000_000
MOST_ROWS = 1_000
MOST_LINKS = 1_000
MOST_DATA_BYTES = 1_000_000


class Parsed(msgspec.Struct, kw_only=True):
    """What a format makes of bytes. `meta` says by `cut` that it is not all of it."""

    kind: str
    title: str = ""
    text: str = ""
    meta: dict[str, Any] = {}
    links: list[str] = []
    data: Any = None

    def bounded(self) -> Parsed:
        """The same, within what a record holds."""
        is_cut = len(self.text) > MOST_TEXT or len(self.links) > MOST_LINKS
        return Parsed(
            kind=self.kind,
            title=one_line(self.title),
            text=clean(self.text[:MOST_TEXT]),
            meta={**self.meta, "cut": True} if is_cut else self.meta,
            links=list(dict.fromkeys(self.links))[:MOST_LINKS],
            data=self.data,
        )


def clean(text: str) -> str:
    """Text that every database takes: without NUL and lone surrogates."""
    if "\0" in text:
        text = text.replace("\0", "")
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def one_line(text: str, most: int = 500) -> str:
    return clean(" ".join(text[: 4 * most].split()))[:most]


def tidy(text: str) -> str:
    """Lines without blanks at their ends, and no more than one empty line in a row."""
    lines: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if bare or (lines and lines[-1]):
            lines.append(bare)
    return "\n".join(lines).strip()
