"""What the two databases of a copy are asked: their rows, how far the copy is, and who works on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol, TypeAlias

import msgspec

from penstock.journal.service_events import DbCopied
from penstock.store.database import Database, Overtaken
from penstock.store.ledger import Ledger
from penstock.store.tables import TABLES, Table
from penstock.store.workers import Workers

# Where a copy is after its last table.
VERIFIED = "verified"
DONE = "done"

Row: TypeAlias = "tuple[Any, ...]"
encode = msgspec.json.Encoder().encode


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


def leases_of(end: End) -> list[Lease]:
    """Who works on a database now."""
    return end.db.decoded("leases", list[Lease], now=end.db.now())


def holds_runs(end: End) -> bool:
    """Whether anything has run in it."""
    return bool(end.db.value("has_runs"))


def mark_in(target: End) -> Mark | None:
    """How far the copy into this database is; None if it is not the target of one."""
    found = target.db.json("copy_mark")
    return None if found is None else msgspec.convert(found, Mark)


def begin_copy(target: End, mark: Mark) -> None:
    """Empty the target and mark it as unfinished: until the copy is done, nobody can work there."""
    with target.db.writing() as now:
        target.clear()
        target.db.do("begin_copy", now=now, **msgspec.to_builtins(mark))


def add_batch(target: End, mark: Mark, table: Table, batch: Sequence[Row]) -> Mark:
    """Put these rows into the target and move the mark behind them, in one transaction."""
    with target.db.writing():
        last_key = encode(batch[-1][: len(table.key)]).decode()
        mark = _moved(target, mark, table.name, last_key)
        target.add(table, batch)
    return mark


def mark_verified(target: End, mark: Mark) -> Mark:
    """Both sides were compared and are the same."""
    with target.db.writing():
        return _moved(target, mark, VERIFIED, "[]")


def finish_copy(target: End, mark: Mark, given: dict[str, int], actor: str, reason: str) -> int:
    """Open the target for work; answers how many jobs were running in the origin.

    Leases are void in the copy: what was running is released, and no attempt is spent.
    """
    with target.db.writing():
        target.raise_ids(given)
    workers = Workers(target.db)
    released = sum(len(workers.sign_off(each.id, "copied")) for each in workers.all())
    with suppress(Overtaken), target.db.writing() as now:
        ledger = Ledger(target.db, now)
        ledger.journal(DbCopied(mark.origin, reason), actor=actor)
        ledger.write()
        _moved(target, mark, DONE, encode(target.last_ids()).decode())
    return released


def _moved(target: End, mark: Mark, table: str, last_key: str) -> Mark:
    """Only from where it was: of two who copy at once, one changes no row and looks again."""
    leaves = {"leaves_table": mark.table_name, "leaves_key": mark.last_key}
    if not target.db.do("move_copy_mark", **leaves, table_name=table, last_key=last_key):
        raise Overtaken
    return msgspec.structs.replace(mark, table_name=table, last_key=last_key)
