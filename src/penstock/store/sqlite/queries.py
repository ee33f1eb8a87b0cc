"""Loads the named queries of the `.sql` files beside this one."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


@cache
def queries() -> dict[str, str]:
    """Every query by its name; a name used twice is a programming error and stops the import."""
    found: dict[str, str] = {}
    for file in sorted(resources.files(__package__).iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".sql"):
            for name, text in _split(file.read_text("utf-8")):
                if name in found:
                    raise ValueError(f"query {name!r} is defined twice (again in {file.name})")
                found[name] = text
    return found


@cache
def migrations() -> list[tuple[int, str]]:
    """The numbered migrations in order."""
    folder = resources.files(__package__) / "migrations"
    files = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    return [(int(name.split("_")[0]), (folder / name).read_text("utf-8")) for name in files]


def _split(text: str) -> list[tuple[str, str]]:
    parts = _NAME.split(text)[1:]
    return [(parts[i], parts[i + 1].strip()) for i in range(0, len(parts), 2)]
