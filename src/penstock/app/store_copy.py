"""Moving a project from one database to another, whole, verified, and resumable wherever it was cut off.

The origin is read in one moment and left as it is. What of it has arrived is marked in the target with
each batch, in the same transaction; until the copy is whole, nobody can work on the target. At the end
both are read again and compared: every table's number of rows, and the sum of its rows' hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import msgspec

from penstock.app.noun import who
from penstock.app.views.store import CopyView, copy_view
from penstock.clock import SystemClock
from penstock.engine.supervisor.lock import ProjectLock
from penstock.errors import ConfigError, Refused, Remedy, StoreError, UsageError
from penstock.settings.address import SQLITE, parse_store, secrets_in
from penstock.store.address import open_end
from penstock.store.copy_progress import (
    DONE,
    End,
    Mark,
    Row,
    add_batch,
    begin_copy,
    encode,
    finish_copy,
    holds_runs,
    leases_of,
    mark_in,
    mark_verified,
)
from penstock.store.database import Overtaken
from penstock.store.project_name import name_in
from penstock.store.tables import TABLES, Table

BATCH_ROWS = 5_000
BATCH_BYTES = 4_000_000
SUMS = 1 << 256


class Digest(msgspec.Struct, frozen=True):
    """What a table holds, whatever order it is read in."""

    table: str
    rows: int
    sha256: str


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


def secrets_of(*addresses: str) -> frozenset[str]:
    """The passwords that stand in addresses, for front ends to mask."""
    found: set[str] = set()
    for address in addresses:
        with suppress(ValueError):  # what can't be read as an address is refused in words
            found |= secrets_in(address)
    return frozenset(found)


def copy_store(
    origin: str,
    target: str,
    *,
    folder: Path | str = ".",
    restart: bool = False,
    on_progress: Tell = lambda step: None,
    actor: str | None = None,
    reason: str = "",
) -> CopyView:
    """Copy the project at one address to another one; no penstock.yaml is needed for it.

    Names of files are relative to the folder. Refused while anything works on either side.
    """
    origin_at, target_at = _address("FROM", origin), _address("TO", target)
    folder, clock = Path(folder).absolute(), SystemClock()
    _refuse_addresses(_file(origin_at, folder), _file(target_at, folder))
    with ExitStack() as until_done:
        ends = []
        for address in (origin_at, target_at):
            file = _file(address, folder)
            if file is not None:
                until_done.enter_context(ProjectLock(file))
            ends.append(until_done.enter_context(closing(open_end(address, folder, clock))))
        here, there = ends
        copied = copy_project(here, there, who(actor), on_progress, restart, reason)
        return copy_view(here.name, there.name, copied)


def _address(which: str, text: str) -> str:
    try:
        return parse_store(text)
    except ConfigError as error:
        raise UsageError(f"{which} {error.message}", code="bad_address") from None


def _file(address: str, folder: Path) -> Path | None:
    is_file = address.startswith(SQLITE)
    return folder / address.removeprefix(SQLITE) if is_file else None


def _refuse_addresses(origin: Path | None, target: Path | None) -> None:
    if origin is not None and target is not None:
        raise Refused(
            "use a backup to copy a file to a file",
            code="both_are_files",
            remedy=Remedy("store.backup"),
        )
    if origin is not None and not origin.is_file():
        raise StoreError(f"there is no database at {origin}", code="no_database")
    if target is not None and not target.parent.is_dir():
        raise UsageError(f"there is no folder {target.parent}", code="no_folder")


def copy_project(
    origin: End, target: End, actor: str, tell: Tell, restart: bool = False, reason: str = ""
) -> Copied:
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
    released = 0 if mark.table_name == DONE else finish_copy(target, mark, given, actor, reason)
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
        raise Refused(f"{target.name} holds the project already", code="same_store")
    for end in (origin, target):
        if end.schema != end.db.schema:
            raise Refused(
                f"{end.name} has schema {end.schema}, this Penstock knows {end.db.schema}: it would leave "
                "some of it behind",
                "upgrade Penstock first",
                code="schema_differs",
            )
        refuse_working(end)


def refuse_working(end: End) -> None:
    leases = leases_of(end)
    if leases:
        first = leases[0]
        raise Refused(
            f"{first.who} is working on {end.name}",
            f"stop it; if it is gone already, wait {max(first.left_s, 1):.0f} s and try again",
            code="store_in_use",
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
    mark, digest = mark_in(target), encode(wanted).decode()
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
            "`restart` discards that copy and starts over",
            code="another_copy",
        )
    if mark is None and holds_runs(target):
        raise Refused(
            f"{target.name} holds a project already",
            "copy into a database that holds none",
            code="store_not_empty",
        )
    _refuse_another(origin, target)
    mark = Mark(origin.name, digest)
    begin_copy(target, mark)
    return mark


def _refuse_another(origin: End, target: End) -> None:
    """A project that has not run yet has its schedules and its place all the same."""
    mine, theirs = name_in(origin.db), name_in(target.db)
    if mine is not None and theirs is not None and mine != theirs:
        raise Refused(
            f"{target.name} holds the project {theirs!r}, and this is {mine!r}",
            "copy into a database or a schema that holds none",
            code="another_project",
        )


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
    present = mark_in(target)
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
            mark = add_batch(target, mark, table, batch)
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
        return mark_verified(target, mark)
    except Overtaken:
        return _overtaken(target, mark)
