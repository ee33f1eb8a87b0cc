"""Loads the named queries of one database's folder."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


@cache
def queries(package: str) -> dict[str, str]:
    """Every query by its name; a name used twice is a programming error and stops the import."""
    found: dict[str, str] = {}
    for file in sorted(resources.files(package).iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".sql"):
            for name, text in split(file.read_text("utf-8")):
                if name in found:
                    raise ValueError(f"query {name!r} is defined twice (again in {file.name})")
                found[name] = text
    return found


def split(text: str) -> list[tuple[str, str]]:
    """The queries of one file: (name, text)."""
    parts = _NAME.split(text)[1:]
    return [(parts[i], parts[i + 1].strip()) for i in range(0, len(parts), 2)]
