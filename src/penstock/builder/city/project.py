"""A project folder whose one source builds the dataset of a city."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from penstock.builder.city.lists import as_csv, as_lines, listed
from penstock.builder.city.server import City, job_of_city

SOURCE = "city"
CONFIG = "penstock.yaml"


def write_lists(city: City, folder: Path) -> None:
    """The lists of the city that are files."""
    found = {name: [row for row, _ in rows] for name, rows in listed(city.world).items()}
    packed = gzip.compress(as_csv(found["register"]), mtime=0)
    (folder / "register.csv.gz").write_bytes(packed)
    (folder / "leads.jsonl").write_bytes(as_lines(found["leads"]))


def lay_out(city: City, folder: Path, *, profile: str = "standard", **about: Any) -> Path:
    """Write the lists and a penstock.yaml that reads them; `about` is more of the source."""
    folder.mkdir(parents=True, exist_ok=True)
    write_lists(city, folder)
    config = folder / CONFIG
    written = {
        "project": "city",
        "store": "sqlite:penstock.db",
        "sources": {SOURCE: source_of(city, profile=profile, **about)},
    }
    # JSON is YAML.
    config.write_bytes(msgspec.json.format(msgspec.json.encode(written), indent=2) + b"\n")
    return config


def source_of(
    city: City, *, profile: str = "standard", params: Mapping[str, Any] | None = None, **about: Any
) -> dict[str, Any]:
    """The source: all hosts are reached through the city, which answers for them."""
    return {
        "pipeline": "penstock.builder.registry:builder",
        "profile": profile,
        "params": {**job_of_city(has_maps=profile == "deep"), **(params or {})},
        # What goes wrong at one of many hosts says nothing about the others.
        "limits": {"concurrency": 16, "candidates": 16, "adaptive": False},
        "fetch": {"proxy": city.proxy, "allow_private": True},
        **about,
    }
