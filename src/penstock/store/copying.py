"""Moving a project from one database to another, whole, verified, and resumable wherever it was cut off.

The origin is read in one moment and left as it is. What of it has arrived is marked in the target with
each batch, in the same transaction; until the copy is whole, nobody can work on the target. At the end
both are read again and compared: every table's number of rows, and the sum of its rows' hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol, TypeAlias

import msgspec

from penstock.errors import Refused, StoreError
from penstock.journal.service_events import DbCopied
from penstock.store.database import Database, Overtaken
from penstock.store.ledger import Ledger
from penstock.store.project_name import name_in
from penstock.store.tables import TABLES, Table
from penstock.store.workers import Workers

BATCH_ROWS = 5_000
BATCH_BYTES = 4_000_000
SUMS = 1 << 256
# Where a copy is after its last table.
VERIFIED = "verified"
DONE = "done"

Row: TypeAlias = "tuple[Any, ...]"
encode = msgspec.json.Encoder().encode


class Digest(msgspec.Struct, frozen=True):
    """What a table holds, whatever order it is read in."""

    table: str
    rows: int
    sha256: str


class Mark(msgspec.Struct, frozen=True):
    """How far a copy has come. `last_key` is the key of the last row, as JSON.

    When it is done, `last_key` holds the last ids of the target: as long as they are the last,
    nobody has worked there since, and whoever asks again is told that it is done.
    """

    origin: str
    digest: str
    table_name: str = TABLES[0].name
    last_key: str = "[]"

    @property
    def is_begun(self) -> bool:
        return self.table_name != TABLES[0].name or self.last_key != "[]"

    @property
    def has_arrived(self) -> bool:
        return self.table_name in (VERIFIED, DONE)


class Lease(msgspec.Struct, frozen=True):
    """Who works on a database, and for how long they may be believed to."""

    who: str
    left_s: float


@dataclass(frozen=True, slots=True)
class Step:
    """How far the copying is: what is done to which table, and how many of its rows are behind."""

    act: str
    table: str
    rows: int
    of: int | None = None


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy came to. `released` jobs were running in the origin and are queued in the copy."""

    tables: Sequence[Digest]
    is_resumed: bool
    released: int

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.tables)


Tell: TypeAlias = Callable[[Step], None]


class End(Protocol):
    """One of the two databases of a copy."""

    name: str

    @property
    def db(self) -> Database: ...

    @property
    def schema(self) -> int:
        """The schema it has."""
        ...

    def identity(self) -> str:
        """Equal for two ends exactly if they are one database."""
        ...

    def version(self) -> object:
        """Another one when somebody has changed the project."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """One moment of the database, for as long as this lasts."""
        ...

    def rows(self, table: Table, after: Sequence[Any]) -> Iterator[Row]:
        """The rows behind this key, in the order of their keys, never many of them in memory."""
        ...

    def clear(self) -> None:
        """Nothing is left in any table; inside a transaction."""
        ...

    def add(self, table: Table, rows: Sequence[Row]) -> None:
        """Put these rows into a table; inside a transaction."""
        ...

    def last_ids(self) -> dict[str, int]:
        """The last id that was given out in each table, also to a row that is gone."""
        ...

    def raise_ids(self, last_ids: dict[str, int]) -> None:
        """From now on give out larger ones than these and than those that are there; in a transaction."""
        ...

    def close(self) -> None: ...


def copy_project(origin: End, target: End, actor: str, tell: Tell, restart: bool = False) -> Copied:
    """Copy every row, or go on with the copy that was cut off; the target is whole when this returns."""
    _refuse_at_once(origin, target)
    version, given = origin.version(), origin.last_ids()
    with origin.reading():
        wanted = digests(origin, "reading", tell)
        found = mark = _begin(origin, target, wanted, restart)
        if not mark.has_arrived:
            mark = _copy(origin, target, mark, wanted, tell)
    _refuse_changed(origin, version)
    if not mark.has_arrived:
        mark = _verified(target, mark, wanted, tell)
    released = 0 if mark.table_name == DONE else _finish(target, mark, given, actor)
    return Copied(wanted, found.is_begun, released)


def digests(end: End, act: str, tell: Tell) -> list[Digest]:
    """Every table's number of rows and the sum of their hashes."""
    return [_digest(end, table, act, tell) for table in TABLES]


def _digest(end: End, table: Table, act: str, tell: Tell) -> Digest:
    count = total = 0
    for row in end.rows(table, ()):
        total += int.from_bytes(sha256(encode(row)).digest(), "big")
        count += 1
        if count % BATCH_ROWS == 0:
            tell(Step(act, table.name, count))
    tell(Step(act, table.name, count, count))
    return Digest(table.name, count, f"{total % SUMS:064x}")


# What is refused.


def _refuse_at_once(origin: End, target: End) -> None:
    if origin.identity() == target.identity():
        raise Refused(f"{target.name} is where the project is already")
    for end in (origin, target):
        if end.schema != end.db.schema:
            raise Refused(
                f"{end.name} has schema {end.schema}, this Penstock knows {end.db.schema}: it would leave "
                "some of it behind",
                "upgrade Penstock first",
            )
        refuse_working(end)


def refuse_working(end: End) -> None:
    leases = end.db.decoded("leases", list[Lease], now=end.db.now())
    if leases:
        first = leases[0]
        raise Refused(
            f"{first.who} is working on {end.name}",
            f"stop it; if it is gone already, wait {max(first.left_s, 1):.0f} s and try again",
        )


def _refuse_changed(origin: End, version: object) -> None:
    if origin.version() != version:
        raise StoreError(
            f"{origin.name} was changed while it was copied",
            "stop whatever changes it, then copy again from the start",
            code="copy_origin_changed",
        )


# Arriving.


def _begin(origin: End, target: End, wanted: Sequence[Digest], restart: bool) -> Mark:
    """Where to go on; a target that holds neither a project nor this copy of it is emptied first."""
    mark, digest = _mark_in(target), encode(wanted).decode()
    is_same = mark is not None and mark.digest == digest
    if mark is not None and mark.table_name == DONE:
        if is_same and msgspec.json.decode(mark.last_key) == target.last_ids():
            return mark
        mark = None
    if mark is not None and is_same and not restart:
        return mark
    if mark is not None and not restart:
        raise Refused(
            f"{target.name} holds an unfinished copy of {mark.origin}, and {origin.name} is another "
            "project or has changed since",
            "--restart discards that copy and starts over",
        )
    if mark is None and target.db.value("has_runs"):
        raise Refused(
            f"{target.name} holds a project already", "copy into a database that holds none"
        )
    _refuse_another(origin, target)
    mark = Mark(origin.name, digest)
    with target.db.writing() as now:
        target.clear()
        target.db.do("begin_copy", now=now, **msgspec.to_builtins(mark))
    return mark


def _refuse_another(origin: End, target: End) -> None:
    """A project that has not run yet has its schedules and its place all the same."""
    mine, theirs = name_in(origin.db), name_in(target.db)
    if mine is not None and theirs is not None and mine != theirs:
        raise Refused(
            f"{target.name} holds the project {theirs!r}, and this is {mine!r}",
            "copy into a database or a schema that holds none",
        )


def _mark_in(target: End) -> Mark | None:
    found = target.db.json("copy_mark")
    return None if found is None else msgspec.convert(found, Mark)


def _copy(origin: End, target: End, mark: Mark, wanted: Sequence[Digest], tell: Tell) -> Mark:
    """Table by table, from the mark on. Who was killed a moment ago may have one commit under way."""
    for _ in range(2):
        try:
            return _copy_on(origin, target, mark, wanted, tell)
        except Overtaken:
            mark = _overtaken(target, mark)
        if mark.has_arrived:
            return mark
    raise _crossed(target)


def _overtaken(target: End, mark: Mark) -> Mark:
    """The mark that somebody else has left."""
    present = _mark_in(target)
    if present is None or present.digest != mark.digest:
        raise _crossed(target)
    return present


def _crossed(target: End) -> Refused:
    return Refused(
        f"another copy to {target.name} is in progress", "let it finish", code="copy_in_progress"
    )


def _copy_on(origin: End, target: End, mark: Mark, wanted: Sequence[Digest], tell: Tell) -> Mark:
    names = [table.name for table in TABLES]
    for table, digest in list(zip(TABLES, wanted, strict=True))[names.index(mark.table_name) :]:
        is_begun = table.name == mark.table_name
        after = msgspec.json.decode(mark.last_key) if is_begun else ()
        done = 0
        for batch in _batches(origin.rows(table, after)):
            with target.db.writing():
                last_key = encode(batch[-1][: len(table.key)]).decode()
                mark = _moved(target, mark, table.name, last_key)
                target.add(table, batch)
            done += len(batch)
            tell(Step("copying", table.name, done, digest.rows))
    return mark


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """So many rows, or so much text, whichever comes first: an item may be a page."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row if type(value) is str)
        if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _moved(target: End, mark: Mark, table: str, last_key: str) -> Mark:
    """Only from where it was: of two who copy at once, one changes no row and looks again."""
    leaves = {"leaves_table": mark.table_name, "leaves_key": mark.last_key}
    if not target.db.do("move_copy_mark", **leaves, table_name=table, last_key=last_key):
        raise Overtaken
    return msgspec.structs.replace(mark, table_name=table, last_key=last_key)


def _verified(target: End, mark: Mark, wanted: Sequence[Digest], tell: Tell) -> Mark:
    with target.reading():
        found = digests(target, "verifying", tell)
    wrong = [mine.table for mine, theirs in zip(wanted, found, strict=True) if mine != theirs]
    if wrong:
        raise StoreError(
            f"the copy in {target.name} is not what was copied: {', '.join(wrong)}",
            "copy again from the start",
            code="copy_differs",
        )
    try:
        with target.db.writing():
            return _moved(target, mark, VERIFIED, "[]")
    except Overtaken:
        return _overtaken(target, mark)


class _Arrived(Workers):
    """A copy that is not in use yet."""

    def __init__(self, db: Database) -> None:
        self._db = db


def _finish(target: End, mark: Mark, given: dict[str, int], actor: str) -> int:
    """Leases are void in the copy: what was running is released, and no attempt is spent."""
    with target.db.writing():
        target.raise_ids(given)
    arrived = _Arrived(target.db)
    released = sum(len(arrived.sign_off(each.id, "copied")) for each in arrived.workers())
    with suppress(Overtaken), target.db.writing() as now:
        ledger = Ledger(target.db, now)
        ledger.journal(DbCopied(mark.origin), actor=actor)
        ledger.write()
        _moved(target, mark, DONE, encode(target.last_ids()).decode())
    return released
