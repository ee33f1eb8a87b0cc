"""Rows that the last version of a file had and this one has not: their records become tombstones.

All keys of the file are read once more and held as 8 bytes each; a file with very many rows is gone through
several times, each time for a part of the keys.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, cast

from penstock.connectors.dump.parts import Position
from penstock.connectors.dump.rows import key_of_row, rows_of

if TYPE_CHECKING:
    from penstock.connectors.dump.walk import Walk
    from penstock.jobs.job import Claimed
    from penstock.pipeline.context import Context

MOST_KEYS = 5_000_000
# Of one job: records that are looked at, and tombstones.
MOST_LOOKED_AT = 50_000
MOST_GONE = 2_000
PAGE = 500


class KeySet:
    """Keys as hashes, in 256 sorted arrays: nothing else that stays exact is smaller."""

    def __init__(self, turn: int, turns: int) -> None:
        self._turn, self._turns = turn, turns
        self._parts = [array("Q") for _ in range(256)]

    def add(self, key: str) -> None:
        found = _hash(key)
        if found % self._turns == self._turn:
            self._parts[found >> 56].append(found)

    def seal(self) -> None:
        """All are there: they can be asked for."""
        self._parts = [array("Q", sorted(part)) for part in self._parts]

    def lacks(self, key: str) -> bool:
        """Whether it is one of this turn's, and not in the file."""
        found = _hash(key)
        if found % self._turns != self._turn:
            return False
        part = self._parts[found >> 56]
        at = bisect_left(part, found)
        return at == len(part) or part[at] != found


def _hash(key: str) -> int:
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest)


def turns_for(rows: int) -> int:
    return 1 + rows // MOST_KEYS


def keys_of(walk: Walk, has_header: bool, fields: Sequence[str]) -> Iterator[str]:
    """The keys of all rows, from the start of the file."""
    at, table, columns = Position(), "", list[str]()
    while True:
        part = walk.part()
        rows, columns = rows_of(part, at, columns if part.name == table else [], has_header)
        table = part.name
        yield from (key_of_row(row, fields, table) for row in rows if not row.problem)
        if part.next is None:
            return
        at = part.next


class LastKeySet:
    """The one that was made last: the jobs that look for vanished rows come one after the other."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of: tuple[object, ...] = ()
        self._found: KeySet | None = None

    def get(self, of: tuple[object, ...], make: Callable[[], KeySet]) -> KeySet:
        with self._lock:
            if self._found is None or self._of != of:
                self._found = None
                self._of, self._found = of, make()
            return self._found

    def forget(self) -> None:
        with self._lock:
            self._of, self._found = (), None


class _Records(Protocol):
    async def own_records(
        self, job: Claimed, collection: str, after_key: str, limit: int
    ) -> list[tuple[str, Any]]: ...


async def own_records(
    ctx: Context, collection: str, after: str, limit: int
) -> list[tuple[str, Any]]:
    """Records of the collection that this source has written, by their keys."""
    services = cast(_Records, ctx.in_progress.services)
    return await services.own_records(ctx.in_progress.job, collection, after, limit)


async def sweep(
    ctx: Context, collection: str, after: str, file: str, keys: KeySet
) -> tuple[list[str], str | None]:
    """Keys whose rows are gone, and the record that was looked at last, if there are more.

    With `file`, only records of rows of that file are looked at.
    """
    gone: list[str] = []
    looked_at = 0
    while looked_at < MOST_LOOKED_AT and len(gone) < MOST_GONE:
        found = await own_records(ctx, collection, after, PAGE)
        if not found:
            return gone, None
        after, looked_at = found[-1][0], looked_at + len(found)
        rows = [data for _, data in found if _is_row_of(data, file)]
        gone += [data["key"] for data in rows if keys.lacks(data["key"])]
    return gone, after


def _is_row_of(data: Any, file: str) -> bool:
    if not isinstance(data, dict) or data.get("kind") != "row":
        return False
    return not file or data.get("meta", {}).get("file") == file
