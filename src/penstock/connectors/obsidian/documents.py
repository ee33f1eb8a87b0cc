"""Notes and canvases as documents, their links as they were resolved when they were listed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.connectors.contract import Item
from penstock.connectors.formats.parsed import Parsed
from penstock.connectors.obsidian.canvas import read_canvas
from penstock.connectors.obsidian.notes import Link, read_note

NOTE = ".md"
CANVAS = ".canvas"


def is_note(name: str) -> bool:
    return name.lower().endswith(NOTE)


def has_links(name: str) -> bool:
    return name.lower().endswith((NOTE, CANVAS))


def links_in(name: str, body: bytes) -> list[Link]:
    """The links of a note or canvas."""
    return read_note(body).links if is_note(name) else read_canvas(body).links


def parsed_note(item: Item, body: bytes) -> Parsed:
    note = read_note(body)
    links = [_shown(each, item) for each in note.links]
    meta: dict[str, Any] = {
        "front_matter": note.front,
        "tags": note.tags,
        "aliases": note.aliases,
        "headings": note.headings,
        "blocks": note.blocks,
        "links": links,
        "unresolved": _unresolved(links),
    }
    if note.is_cut:
        meta["cut"] = True
    return Parsed(
        kind="note",
        title=item.key.rpartition("/")[2][: -len(NOTE)],
        text=note.text,
        meta=meta,
        links=[*note.urls, *_leading_to(links)],
    ).bounded()


def parsed_canvas(item: Item, body: bytes) -> Parsed:
    canvas = read_canvas(body)
    links = [_shown(each, item) for each in canvas.links]
    meta: dict[str, Any] = {"links": links, "unresolved": _unresolved(links)}
    if canvas.data is None and body.strip():
        meta["cut"] = True
    return Parsed(
        kind="canvas",
        title=item.key.rpartition("/")[2][: -len(CANVAS)],
        text=canvas.text,
        meta=meta,
        links=[*canvas.urls, *_leading_to(links)],
        data=canvas.data,
    ).bounded()


def _shown(link: Link, item: Item) -> dict[str, Any]:
    """A link as `meta.links` has it; `to` is the key of the file, None if there is none."""
    found = item.about.get("to", {}).get(link.path) if link.path else {"path": item.key}
    shown: dict[str, Any] = {
        "kind": link.kind,
        "target": link.target,
        "to": found["path"] if found else None,
    }
    about = {"heading": link.heading, "block": link.block, "text": link.text}
    shown.update((name, text) for name, text in about.items() if text)
    shown.update((name, True) for name in ("by_alias", "is_ambiguous") if found and found.get(name))
    return shown


def _unresolved(links: Iterable[dict[str, Any]]) -> int:
    return sum(link["to"] is None for link in links)


def _leading_to(links: Iterable[dict[str, Any]]) -> list[str]:
    return [link["to"] or f"[[{link['target']}]]" for link in links]
