"""The schema of a database: which migrations it has, which it lacks, and which code may work on it.

A migration expands (code that does not know it goes on working) or contracts (code that knows less
than some schema must be gone). Two versions of Penstock can therefore work on one database at once:
the new one expands it, and a later one contracts it when nobody needs what is taken away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol

import msgspec

from penstock.errors import Refused, Remedy, StoreError
from penstock.journal.origin import current_origin
from penstock.journal.service_events import DbMigrated
from penstock.store.database import to_json
from penstock.store.queries import folder_of

# What a database is opened for: to work on it, to put a copy into it, or to look at its schema alone.
Purpose = Literal["work", "copy", "schema"]

_HEAD = re.compile(r"\A(?:--[^\n]*\n)*")
_CONTRACTS = re.compile(r"contracts: (\d+)")
# What a semicolon may stand in without ending a statement.
_TOKEN = re.compile(r"\$\$.*?\$\$|'[^']*'|--[^\n]*|;", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file. `contracts` is the oldest schema that code must know afterwards; 0 if any may."""

    number: int
    name: str
    text: str
    contracts: int = 0
    locks: str = ""
    is_outside: bool = False

    @property
    def effect(self) -> str:
        return "contracts" if self.contracts else "expands"

    def statements(self) -> list[str]:
        return _split(self.text)


@dataclass(frozen=True, slots=True)
class State:
    """The schema as it is: its number (0 if there is none), and the oldest one that code must know."""

    number: int = 0
    contract: int = 0


@dataclass(frozen=True, slots=True)
class OldWorker:
    """A worker that holds a lease, and whose code does not know the newest schema."""

    id: str
    host: str
    version: str
    schema: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What `penstock db migrate` would do. `leftovers` are indexes whose making was cut short."""

    state: State
    pending: Sequence[Migration]
    old_workers: Sequence[OldWorker] = ()
    leftovers: Sequence[str] = ()

    def in_the_way(self, migration: Migration) -> list[OldWorker]:
        """Those who could not go on working after this one."""
        return [each for each in self.old_workers if each.schema < migration.contracts]


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration that was applied, and how long its transaction lasted by the database's clock."""

    migration: Migration
    took_s: float


class Schema(Protocol):
    """The schema of one database, to look at and to bring up to date."""

    @property
    def schema(self) -> int:
        """The newest one that this code knows."""
        ...

    def plan(self) -> Plan: ...

    def migrate(self, actor: str, reason: str) -> Iterator[Applied]: ...

    def clear_leftovers(self) -> list[str]: ...

    def size_bytes(self) -> int:
        """How large the database is, with its indexes."""
        ...

    def problems(self) -> list[str]:
        """What the database itself knows to be wrong with it."""
        ...

    def close(self) -> None: ...


# From this schema on, the journal has data; before it, a sentence.
JOURNAL_HAS_DATA = 15


JOURNAL_HAS_ORIGIN = 18


def migrated_event(migration: Migration, actor: str, reason: str) -> dict[str, str]:
    """The event of a migration that is applied now, by the columns that the journal has by then."""
    event = DbMigrated(migration.name, reason)
    line = {"kind": event.kind, "actor": actor}
    if migration.number < JOURNAL_HAS_DATA:
        return {**line, "detail": event.sentence()}
    line["data"] = to_json(msgspec.to_builtins(event))
    return line if migration.number < JOURNAL_HAS_ORIGIN else {**line, "origin": current_origin()}


@cache
def migrations(package: str) -> tuple[Migration, ...]:
    """The migrations of one database, in order."""
    folder = folder_of(package) / "migrations"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return tuple(
        parse(name.removesuffix(".sql"), (folder / name).read_text("utf-8")) for name in names
    )


def parse(name: str, text: str) -> Migration:
    """A migration from its file; one that does not say which code it is safe beside is refused."""
    found = _HEAD.match(text)
    head = [line.removeprefix("--").strip() for line in (found[0] if found else "").splitlines()]
    contracts = [int(each[1]) for line in head if (each := _CONTRACTS.fullmatch(line))]
    if len(contracts) + head.count("expands") != 1:
        raise ValueError(f"{name}.sql must say either `-- expands` or `-- contracts: N`")
    is_outside = "outside a transaction" in head
    if is_outside and contracts:
        raise ValueError(
            f"{name}.sql contracts: it needs a transaction, to see that nobody is in the way"
        )
    return Migration(
        int(name.partition("_")[0]),
        name,
        text,
        contracts[0] if contracts else 0,
        next((line.removeprefix("locks: ") for line in head if line.startswith("locks: ")), ""),
        is_outside,
    )


def pending(known: Sequence[Migration], state: State) -> list[Migration]:
    return [each for each in known if each.number > state.number]


def refuse_newer(place: str, state: State, known: int) -> None:
    """Code may work on a schema that it does not know, until what it knows was taken away."""
    if state.number > known and state.contract > known:
        raise StoreError(
            f"{place} has schema {state.number}, this Penstock knows up to {known}",
            "upgrade Penstock on this host",
        )


def refuse_unasked(place: str, missing: Sequence[Migration], state: State) -> None:
    """Take nothing away that older code needs unless somebody has asked for it."""
    if state.number and any(each.contracts for each in missing):
        raise StoreError(
            f"{place} has schema {state.number}, this Penstock needs {missing[-1].number}, and older "
            "ones can't work on that",
            "penstock db migrate --plan shows what would change; penstock db migrate does it",
        )


def refuse_in_the_way(migration: Migration, workers: Sequence[OldWorker]) -> None:
    if workers:
        first = workers[0]
        more = f" and {len(workers) - 1} more" if len(workers) > 1 else ""
        raise Refused(
            f"{migration.name} takes away what a worker on {first.host} (Penstock {first.version}) "
            f"needs{more}",
            "upgrade Penstock there, or stop it; then try again",
        )


def refuse_unfinished(place: str, origin: str | None) -> None:
    """Nobody may work on half a project."""
    if origin is not None:
        raise Refused(
            f"{place} holds an unfinished copy of {origin}",
            "wait for it, or start the same copy again: it continues where it stopped",
            code="copy_unfinished",
            remedy=Remedy("store.copy"),
        )


def _split(text: str) -> list[str]:
    """The statements of a file, each without the semicolon at its end."""
    ends = [found.start() for found in _TOKEN.finditer(text) if found[0] == ";"]
    begins = [0, *(end + 1 for end in ends)]
    parts = (text[begin:end].strip() for begin, end in zip(begins, ends, strict=False))
    return [part for part in parts if part]
