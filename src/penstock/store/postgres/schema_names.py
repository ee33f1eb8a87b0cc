"""Names in a database that several projects may share: each project's tables are in a schema of its own."""

from __future__ import annotations

import re
import zlib
from functools import cache

from penstock.settings.address import SCHEMA
from penstock.store.queries import queries

# How our SQL names its own tables, whichever schema they are in. Never a host's name, a file's or a word.
_OURS = re.compile(rf"\b{SCHEMA}\.(?=[a-z_'])")
# "PSTK".
_LOCK = 0x5053544B


def in_schema(text: str, schema: str) -> str:
    """The SQL with its tables in this schema. Quoted: a schema may be called like a word of SQL."""
    return text if schema == SCHEMA else _OURS.sub(f'"{schema}".', text)


@cache
def queries_in(package: str, schema: str) -> dict[str, str]:
    """Every query of the package by its name, over the tables of this schema."""
    return {name: in_schema(text, schema) for name, text in queries(package).items()}


def channel_of(schema: str) -> str:
    """Where hints about work are given: those of another project wake nobody here."""
    return SCHEMA if schema == SCHEMA else f"{SCHEMA}_{schema}"


def lock_of(schema: str) -> int:
    """The advisory lock of whoever migrates this schema."""
    return _LOCK if schema == SCHEMA else _LOCK << 32 | zlib.crc32(schema.encode())
