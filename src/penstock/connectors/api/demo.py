"""Demo data, and what `penstock add` writes down of an API that it has looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from penstock.connectors.contract import Sample

# Fields that are keys of records, the usual ones first.
_KEYS = ("id", "_id", "uuid", "guid", "key", "code", "sku", "slug", "number", "name", "url")
_MILLS = (
    ("m-1", "Mill on the Brook", "Grinds rye and wheat.", "2026-11-02T08:00:00Z"),
    ("m-2", "Upper Mill", "Closed for repair.", "2026-11-03T09:30:00Z"),
    ("m-3", "Paper Mill", "Makes paper from rags.", "2026-11-05T17:45:00Z"),
)


def write(folder: Path) -> Sample:
    """Two pages, of which the first names the second."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [
        dict(zip(("id", "name", "description", "updated_at"), each, strict=True)) for each in _MILLS
    ]
    pages = {
        "items.json": {"items": records[:2], "next": "items-2.json"},
        "items-2.json": {"items": records[2:], "next": None},
    }
    for name, page in pages.items():
        (folder / name).write_bytes(msgspec.json.format(msgspec.json.encode(page), indent=2))
    return Sample("demo-api", {"url": f"./{folder.name}/items.json"})


def key_field(records: list[Any]) -> str:
    """The usual field that tells these records apart; empty if there is none."""
    for name in _KEYS:
        values = [each.get(name) for each in records if isinstance(each, dict)]
        plain = [
            v for v in values if isinstance(v, str | int) and not isinstance(v, bool) and v != ""
        ]
        if len(plain) == len(records) == len(set(plain)):
            return name
    return ""


def name_of(url: str) -> str:
    """`api.example.com-items`, for an address of items."""
    parts = urlsplit(url)
    last = parts.path.rstrip("/").rpartition("/")[2].removesuffix(".json")
    return f"{parts.netloc}-{last}" if last else parts.netloc
