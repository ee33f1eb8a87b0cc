"""A note as Obsidian reads it: properties, tags, aliases, headings, blocks and links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

import msgspec

from penstock.connectors.formats.markdown import front_matter
from penstock.connectors.formats.parsed import MOST_LINKS, clean, one_line
from penstock.http.charset import decoded

MOST_TAGS = 1_000
# No run is of any length: what may be tried at each place would make the whole quadratic.
_WIKI = re.compile(r"(!?)\[\[([^\[\]\n]{1,1000})\]\]")
_MARKDOWN = re.compile(
    r"(!?)\[[^\[\]\n]{0,500}\]\([ \t]{0,3}(?:<([^<>\n]{1,1000})>|([^\s()<>]{1,1000}))"
    r"(?:[ \t]{1,3}\"[^\"\n]{0,300}\")?[ \t]{0,3}\)"
)
_BARE = re.compile(r"<(https?://[^\s<>]{1,2000})>")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,30}:")
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.{1,500}?)[ \t#]*$", re.MULTILINE)
_BLOCK = re.compile(r"(?:^|[ \t])\^([A-Za-z0-9-]{1,100})[ \t]*$", re.MULTILINE)
_TAG = re.compile(r"(?:^|(?<=\s))#([\w/-]{1,200})", re.MULTILINE)
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_TICKS = re.compile(r"`+")


class Link(msgspec.Struct, frozen=True):
    """A link to a file of the vault. `path` is empty for one within the note itself."""

    kind: str
    path: str
    heading: str = ""
    block: str = ""
    text: str = ""

    @property
    def target(self) -> str:
        """As it was written."""
        below = f"#^{self.block}" if self.block else f"#{self.heading}" if self.heading else ""
        return self.path + below


class Note(msgspec.Struct, frozen=True):
    """What a note says."""

    text: str
    front: dict[str, Any]
    tags: list[str]
    aliases: list[str]
    headings: list[dict[str, Any]]
    blocks: list[str]
    links: list[Link]
    urls: list[str]
    is_cut: bool


def read_note(body: bytes) -> Note:
    """Everything in a note that Obsidian has an index of."""
    front, text = front_matter(clean(decoded(body, "")))
    seen = without_code(text)
    found = [*_links_of_properties(front), *links_of(seen)]
    headings = [
        {"level": len(each[1]), "text": one_line(each[2])} for each in _HEADING.finditer(seen)
    ]
    blocks = list(dict.fromkeys(each[1] for each in _BLOCK.finditer(seen)))
    return Note(
        text=text.strip(),
        front=front,
        tags=_tags(front, seen),
        aliases=aliases_of(front),
        headings=headings[:MOST_LINKS],
        blocks=blocks[:MOST_LINKS],
        links=found[:MOST_LINKS],
        urls=list(urls_of(seen)),
        is_cut=max(len(found), len(headings), len(blocks)) > MOST_LINKS,
    )


def links_of(text: str, kind: str = "link") -> Iterator[Link]:
    """Links to files of the vault, by wikilinks and by Markdown; `![[…]]` and `![](…)` are embeds."""
    for found in _WIKI.finditer(text):
        target, _, shown = found[2].partition("|")
        yield _link("embed" if found[1] else kind, target.removesuffix("\\"), shown.strip())
    for found in _MARKDOWN.finditer(text):
        target = found[2] or found[3]
        if not _SCHEME.match(target):
            yield _link("embed" if found[1] else kind, unquote(target, errors="replace"), "")


def urls_of(text: str) -> Iterator[str]:
    """Links that leave the vault."""
    for found in _MARKDOWN.finditer(text):
        if _SCHEME.match(target := found[2] or found[3]):
            yield target
    yield from (found[1] for found in _BARE.finditer(text))


def _link(kind: str, target: str, shown: str) -> Link:
    path, _, below = clean(target).strip().partition("#")
    block = below.rpartition("#")[2].strip()
    if block.startswith("^"):
        return Link(kind, path.strip(), block=block[1:], text=one_line(shown))
    return Link(kind, path.strip(), heading=one_line(below), text=one_line(shown))


def _links_of_properties(value: Any, depth: int = 0) -> Iterator[Link]:
    """Properties may have wikilinks: `up: "[[Index]]"`."""
    if isinstance(value, str):
        yield from (
            msgspec.structs.replace(each, kind="property")
            for each in links_of(value)
            if "[[" in value
        )
    elif isinstance(value, (dict, list)) and depth < 10:
        for each in value.values() if isinstance(value, dict) else value:
            yield from _links_of_properties(each, depth + 1)


def aliases_of(front: dict[str, Any]) -> list[str]:
    found = front.get("aliases", front.get("alias"))
    texts = found.split(",") if isinstance(found, str) else found
    return _unique(texts)


def _tags(front: dict[str, Any], text: str) -> list[str]:
    """Those of the properties and those in the text, `a/b` as it is; a number alone is no tag."""
    found = front.get("tags", front.get("tag"))
    texts = re.split(r"[,\s]+", found[:10_000]) if isinstance(found, str) else found
    named = [each.lstrip("#") for each in _unique(texts)]
    inline = (each[1].strip("/") for each in _TAG.finditer(text))
    tags = (each for each in (*named, *inline) if not each.replace("/", "").isdigit())
    return _unique(tags)


def _unique(texts: Any) -> list[str]:
    if not isinstance(texts, Iterable) or isinstance(texts, (str, bytes, dict)):
        return []
    wanted = (one_line(str(each)) for each in texts if isinstance(each, (str, int, float)))
    return list(dict.fromkeys(each for each in wanted if each))[:MOST_TAGS]


def without_code(text: str) -> str:
    """The text with blanks for what Obsidian does not look into: code and comments."""
    lines, fence = [], ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            is_end = found and found[1].startswith(fence) and not line.strip("`~ \t\r")
            fence, line = "" if is_end else fence, ""
        elif found:
            fence, line = found[1], ""
        lines.append(_without_inline_code(line) if "`" in line else line)
    return _without(_without("\n".join(lines), "<!--", "-->"), "%%", "%%")


def _without_inline_code(line: str) -> str:
    """Between two runs of the same number of backticks; a run without its twin is text."""
    runs = [(found.start(), found.end()) for found in _TICKS.finditer(line)]
    last = {end - start: at for at, (start, end) in enumerate(runs)}
    kept, at, opened = "", 0, None
    for number, (start, end) in enumerate(runs):
        size = end - start
        if opened is None and last[size] > number:
            kept, opened = f"{kept}{line[at:start]} ", size
        elif opened == size:
            at, opened = end, None
    return kept + line[at:]


def _without(text: str, start: str, end: str) -> str:
    """Without what stands between two marks; a mark without its end is text."""
    parts, at = [], 0
    while (first := text.find(start, at)) >= 0:
        last = text.find(end, first + len(start))
        if last < 0:
            break
        parts.append(text[at:first])
        at = last + len(end)
    return " ".join([*parts, text[at:]])
