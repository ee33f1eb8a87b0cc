"""Loads the named queries of one database: those of its own folder, and those that both databases share."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

SHARED = "penstock.store.sql"
_HEAD = re.compile(r"^-- (name|part): (\w+)\s*$", re.MULTILINE)
_PART = re.compile(r"\{\{(\w+)\}\}")
_OUR_SCHEMA = re.compile(r"\bpenstock\.(?=[a-z_])")
# Not a cast.
_VALUE = re.compile(r"(?<![:\w]):([a-z_]+)")


@cache
def queries(package: str) -> dict[str, str]:
    """Every query by its name; a name used twice is a programming error and stops the import."""
    spelled = SPELLINGS[package]
    found = [*named(package), *((name, spelled(text)) for name, text in named(SHARED))]
    known = dict(found)
    if len(known) < len(found):
        twice = [name for name, times in Counter(name for name, _ in found).items() if times > 1]
        raise ValueError(f"defined twice for {package}: {', '.join(twice)}")
    return known


def named(package: str) -> list[tuple[str, str]]:
    """The queries of a folder as they are written there: (name, text)."""
    files = sorted(folder_of(package).glob("*.sql"))
    return [query for file in files for query in split(file.read_text("utf-8"))]


def folder_of(package: str) -> Path:
    """The folder of a package of the store: `importlib.resources` would make every command start later."""
    return Path(__file__).parent / package.rpartition(".")[2]


def split(text: str) -> list[tuple[str, str]]:
    """The queries of one file: (name, text), each with the `-- part: …` that it names as `{{part}}`."""
    found = _HEAD.split(text)[1:]
    blocks = [(found[i], found[i + 1], found[i + 2].strip()) for i in range(0, len(found), 3)]
    parts = {name: block for head, name, block in blocks if head == "part"}
    return [
        (name, _PART.sub(lambda at: parts[at[1]], block))
        for head, name, block in blocks
        if head == "name"
    ]


def for_sqlite(shared: str) -> str:
    """A file has no schemas: `penstock.job` is `job`."""
    return _OUR_SCHEMA.sub("", shared)


def for_postgres(shared: str) -> str:
    """The driver's own way to name values: `:now` is `%(now)s`."""
    return _VALUE.sub(r"%(\1)s", shared.replace("%", "%%"))


# How each database spells what is shared.
SPELLINGS = {"penstock.store.sqlite": for_sqlite, "penstock.store.postgres": for_postgres}
