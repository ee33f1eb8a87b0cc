"""The structure of a page: which elements a selector would find, and which JSON-LD types or JSON keys it has.

Two pages of one kind have nearly the same structure, whatever they say. What a page has lost against the last
good one is what its pipeline probably looks for in vain.

Pages are hostile: of each, only so many bytes, elements, names and levels are looked at.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any

from msgspec import Struct

from penstock.alerts.tags import Tag, tags_of

MOST_BYTES = 2_000_000
MOST_NODES = 20_000  # tags, or values of JSON
MOST_NAMES = 3_000
MOST_PER_NODE = 8
LONGEST_NAME = 60
MOST_JSON_BYTES = 500_000
MOST_DEPTH = 12
MOST_ITEMS = 200
MOST_SHOWN = 20

# Names that a build or a session makes up, and that are different with each page: css-1q2w3e, item-839201.
_PART = re.compile(r"[-_:]+")
_WORD = re.compile(r"\d{0,3}[A-Za-z]*\d{0,3}")
_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_TYPE = re.compile(r"[\w:./#-]+", re.ASCII)
# What says the most comes first.
_RANKS = ("JSON-LD ", "[itemprop=", "meta[", "key ", "#")
_META = ("property", "name")


class Structure(Struct, frozen=True):
    """What a page has, and how often. `is_whole`: nothing of it was left out because it is too large."""

    names: dict[str, int]
    title: str = ""
    is_whole: bool = True


class Difference(Struct, frozen=True):
    """What the failing page lost against the good one, and what it has instead: the most telling first."""

    vanished: list[str] = []
    appeared: list[str] = []
    # How much of what the good page has the failing one has, too: 1.0 for pages of one kind.
    kept: float = 1.0

    @property
    def is_other_page(self) -> bool:
        """Nearly nothing is left: an error page, a login or a block, not a page of another design."""
        return self.kept < 0.2


def structure_of(page: bytes | str) -> Structure:
    """The structure of an HTML page or a JSON document; of anything else there is none."""
    body = page.encode("utf-8", "replace") if isinstance(page, str) else page
    head = body[:MOST_BYTES]
    if head.lstrip()[:1] in (b"{", b"["):
        return _of_json(body)
    return _of_html(head, is_whole=len(head) == len(body))


def difference(good: Structure, failing: Structure) -> Difference:
    """What vanished and what appeared between the last good page and a failing one."""
    vanished = {name: count for name, count in good.names.items() if name not in failing.names}
    # Of a page that was cut, nothing is known to be missing that the rest may have.
    gone = _ranked(vanished) if failing.is_whole else []
    appeared = {name: count for name, count in failing.names.items() if name not in good.names}
    kept = 1.0 - len(vanished) / len(good.names) if good.names and failing.is_whole else 1.0
    return Difference(gone[:MOST_SHOWN], _ranked(appeared)[:MOST_SHOWN], kept)


def _ranked(names: dict[str, int]) -> list[str]:
    """By kind, then how often; an element with a class says more than the element."""

    def order(name: str) -> tuple[int, bool, int, str]:
        rank = next((at for at, start in enumerate(_RANKS) if name.startswith(start)), len(_RANKS))
        return rank, rank == len(_RANKS) and "." not in name, -names[name], name

    return sorted(names, key=order)


# HTML.


def _of_html(body: bytes, *, is_whole: bool) -> Structure:
    names: Counter[str] = Counter()
    title = ""
    for number, tag in enumerate(tags_of(body.decode("utf-8", "replace"))):
        if number >= MOST_NODES or len(names) > MOST_NAMES:
            is_whole = False
            break
        names.update(_names_of(tag))
        if tag.name == "title" and not title:
            title = " ".join(unescape(tag.text[:1000]).split())[:200]
    return Structure(dict(names), title, is_whole)


def _names_of(tag: Tag) -> Iterator[str]:
    yield tag.name
    yield from (f"{tag.name}.{each}" for each in _stable(tag.attribute("class").split()))
    yield from (f"#{each}" for each in _stable([tag.attribute("id")]))
    yield from (f"[itemprop={each}]" for each in _stable(tag.attribute("itemprop").split()))
    if tag.name == "meta":
        yield from _of_meta(tag)
    if tag.name == "script" and tag.attribute("type").strip().lower() == "application/ld+json":
        yield from _json_ld(tag.text)


def _stable(names: Iterable[str]) -> Iterator[str]:
    kept = [each for each in names if len(each) <= LONGEST_NAME and _NAME.fullmatch(each)]
    yield from [each for each in kept if not _is_made_up(each)][:MOST_PER_NODE]


def _is_made_up(name: str) -> bool:
    """`price`, `h2` and `col-6` are words with numbers; `css-1q2w3e` and `item-839201` are not."""
    return not all(map(_WORD.fullmatch, _PART.split(name)))


def _of_meta(tag: Tag) -> Iterator[str]:
    for key in _META:
        value = tag.attribute(key)
        if value and len(value) <= LONGEST_NAME and _TYPE.fullmatch(value):
            yield f"meta[{key}={value}]"


# JSON-LD and JSON.


def _json_ld(text: str) -> Iterator[str]:
    found = _parsed(text)
    for depth, value in _walk(found):
        if isinstance(value, dict) and depth <= MOST_DEPTH:
            types = value.get("@type")
            for each in types if isinstance(types, list) else [types]:
                if isinstance(each, str) and len(each) <= LONGEST_NAME and _TYPE.fullmatch(each):
                    yield f"JSON-LD {each}"
                    yield from _properties(each, value)


def _properties(kind: str, value: dict[str, Any]) -> Iterator[str]:
    for name in list(value)[: MOST_PER_NODE * 4]:
        if not name.startswith("@") and len(name) <= LONGEST_NAME and _NAME.fullmatch(name):
            yield f"JSON-LD {kind}.{name}"


def _parsed(text: str | bytes) -> Any:
    if len(text) > MOST_JSON_BYTES:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _walk(found: Any) -> Iterator[tuple[int, Any]]:
    """All values, breadth first, down to a depth and only so many."""
    waiting = [(0, found)]
    for at in range(MOST_NODES):
        if at >= len(waiting):
            return
        depth, value = waiting[at]
        yield depth, value
        if depth < MOST_DEPTH and isinstance(value, (dict, list)):
            below = list(value.values()) if isinstance(value, dict) else value
            waiting += [(depth + 1, each) for each in below[:MOST_ITEMS]]


def _of_json(body: bytes) -> Structure:
    found = _parsed(body)
    names: Counter[str] = Counter()
    waiting = [("", found)]
    for at in range(MOST_NODES):
        if at >= len(waiting) or len(names) > MOST_NAMES:
            break
        path, value = waiting[at]
        for below, inner in _below(path, value):
            if below != path:
                names[f"key {below}"] += 1
            waiting.append((below, inner))
    return Structure(dict(names), "", len(body) <= MOST_JSON_BYTES)


def _below(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if path.count(".") >= MOST_DEPTH:
        return
    if isinstance(value, list):
        for inner in value[:MOST_ITEMS]:
            yield path, inner
    elif isinstance(value, dict):
        for name in list(value)[:MOST_ITEMS]:
            if _NAME.fullmatch(name) and len(name) <= LONGEST_NAME and not _is_made_up(name):
                yield f"{path}.{name}" if path else name, value[name]
