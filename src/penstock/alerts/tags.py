"""The start tags of a page, in the order of the page, without making a tree of it.

A parser that makes a tree can be kept busy for minutes, or made to need gigabytes, by a page of a few hundred
kilobytes: by deep nesting, or by formatting that each paragraph opens again. The time that this takes grows
with the page, whatever is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MOST_ATTRIBUTES = 50
LONGEST_VALUE = 4000
# In these there are no tags, whatever it looks like.
RAW = {
    name: re.compile(rf"</{name}(?![a-z])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title")
}
_NEXT = re.compile(r"<(?:(!--)|([a-zA-Z][a-zA-Z0-9:-]{0,59}))")
_ATTRIBUTE = re.compile(
    r"""[\s/]*+(?:
      (?P<name>[^\s"'>/=]{1,100}+)
        (?:\s*+=\s*+(?:"(?P<double>[^"]{0,4000})"|'(?P<single>[^']{0,4000})'|(?P<bare>[^\s"'=<>`]{1,4000}+)))?+
      | (?P<end>>)
      | .
    )""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(slots=True)
class Tag:
    """One start tag; `text` is what is in it, of elements that hold text alone."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""

    def attribute(self, name: str) -> str:
        return self.attributes.get(name, "")


def tags_of(page: str) -> Iterator[Tag]:
    """Each start tag of the page."""
    at = 0
    while (found := _NEXT.search(page, at)) is not None:
        if found[1]:
            at = _after(page, "-->", found.end())
            continue
        tag = Tag(found[2].lower())
        at = _read_attributes(page, found.end(), tag)
        if tag.name in RAW:
            closed = RAW[tag.name].search(page, at)
            end = closed.start() if closed is not None else len(page)
            tag.text, at = page[at:end], end
        yield tag


def _read_attributes(page: str, at: int, tag: Tag) -> int:
    """Read them into the tag; the answer is where it ends."""
    for _ in range(MOST_ATTRIBUTES):
        found = _ATTRIBUTE.match(page, at)
        if found is None:
            return len(page)
        at = found.end()
        if found["end"]:
            return at
        if found["name"]:
            value = found["double"] or found["single"] or found["bare"] or ""
            tag.attributes.setdefault(found["name"].lower(), value)
    return _after(page, ">", at)


def _after(page: str, text: str, at: int) -> int:
    found = page.find(text, at)
    return len(page) if found < 0 else found + len(text)
