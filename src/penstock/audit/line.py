"""A row of the journal as it is hashed: canonical JSON, the same from either database."""

from __future__ import annotations

from hashlib import sha256

import msgspec

# A time near today is a whole number of these parts of a second, in the float that both databases store.
TICKS = 1 << 22
_encode = msgspec.json.Encoder().encode


class Line(msgspec.Struct):
    """Every column that says something, in the order of their names; `source` is the key of `source_id`.

    `at` is read in ticks: JSON from SQL does not give every bit of a float.
    """

    actor: str
    at: float
    attempt: int | None
    data: str | None
    detail: str
    id: int
    job_id: int | None
    kind: str
    origin: str | None
    run_id: int | None
    source: str | None
    source_id: int | None
    worker: str | None


def in_seconds(lines: list[Line]) -> list[Line]:
    """The same lines, with their times in seconds instead of ticks."""
    for line in lines:
        line.at /= TICKS
    return lines


def canonical(line: Line) -> bytes:
    """The line as JSON: keys in order, no spaces, UTF-8, floats as short as they can be read back."""
    return _encode(line)


def hash_of(line: Line) -> bytes:
    return sha256(_encode(line)).digest()
