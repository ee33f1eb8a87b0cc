"""A canvas: a JSON file of cards, which have text, or show a file or a page."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.connectors.formats.parsed import MOST_DATA_BYTES, MOST_LINKS, clean
from penstock.connectors.obsidian.notes import Link, links_of, urls_of, without_code
from penstock.jobs.failures import BadData


class Canvas(msgspec.Struct, frozen=True):
    """What a canvas says. `data` is the whole of it, if a record can hold that."""

    text: str
    links: list[Link]
    urls: list[str]
    data: Any


def read_canvas(body: bytes) -> Canvas:
    nodes, value = _nodes(body)
    texts = [str(node["text"]) for node in nodes if isinstance(node.get("text"), str)]
    links = [each for text in texts for each in links_of(without_code(text))]
    urls = [each for text in texts for each in urls_of(text)]
    for node in nodes:
        if isinstance(node.get("file"), str):
            below = str(node.get("subpath") or "").removeprefix("#")
            block = below[1:] if below.startswith("^") else ""
            path = clean(node["file"])
            links.append(Link("canvas", path, "" if block else clean(below), clean(block)))
        if isinstance(node.get("url"), str):
            urls.append(clean(node["url"]))
    labels = [str(node["label"]) for node in nodes if isinstance(node.get("label"), str)]
    data = value if len(body) <= MOST_DATA_BYTES else None
    return Canvas("\n\n".join([*labels, *texts]), links[:MOST_LINKS], urls, data)


def _nodes(body: bytes) -> tuple[list[dict[str, Any]], Any]:
    """An empty file is an empty canvas."""
    if not body.strip():
        return [], None
    try:
        value = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise BadData(f"this is no canvas: {str(error)[:200]}", cause="no canvas") from None
    found = value.get("nodes", []) if isinstance(value, dict) else None
    if not isinstance(found, list):
        raise BadData("this is no canvas: it has no list of nodes", cause="no canvas")
    return [node for node in found if isinstance(node, dict)], value
