"""`cells:` the other databases that a project's sources are divided over, beside `store:`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from penstock.errors import ConfigError, nearest
from penstock.settings.address import POSTGRES, name_of, parse_store
from penstock.settings.declaration import Keys, Reads, Usual, about, between, decode
from penstock.settings.document import Entry, join
from penstock.settings.kinds import text_schema
from penstock.settings.release import NAME
from penstock.settings.section import read_text
from penstock.settings.snapshot_address import parse_snapshots

# The database that `store:` names.
MAIN = "main"
VARIABLE = "PENSTOCK_CELL"
# The ids of a cell begin with its number: so no two cells give a run or a job the same one.
IDS_PER_CELL = 10**13
# Beyond it ids would be larger than what JSON's readers take for whole numbers.
MOST_CELLS = 900


def _read_store(entry: Entry, path: str) -> str:
    text = read_text(entry, path)
    try:
        found = parse_store(text)
    except ConfigError as error:
        raise entry.error(path, error.message) from None
    if not found.startswith(POSTGRES):
        raise entry.error(path, "must be postgresql://USER@HOST/DATABASE: cells are on Postgres")
    return found


class CellKeys(Keys, frozen=True):
    """One database beside `store:`, with workers of its own."""

    number: Annotated[
        int,
        between(1, MOST_CELLS),
        about("its own number: ids of its runs and jobs begin with it. It can't be changed later"),
    ]
    store: Annotated[
        str,
        Reads(_read_store, text_schema),
        about("its database: `postgresql://USER@HOST/DATABASE`, or `?schema=NAME` in one"),
    ]
    snapshots: Annotated[
        str | None,
        about("where its raw payloads are stored; no other cell may store there"),
        Usual("`snapshots` of the project, with `-NAME` appended"),
    ] = None


@dataclass(frozen=True, slots=True)
class CellSettings:
    """A cell: `main` has the number 0."""

    name: str
    number: int
    store: str = field(repr=False)
    snapshots: Path | str = field(repr=False)

    @property
    def store_name(self) -> str:
        """Its database in words for people, without anything secret."""
        return name_of(self.store)


def read_cells(entry: Entry, path: str) -> dict[str, tuple[Entry, CellKeys]]:
    """The cells beside `main`, by their names."""
    if not isinstance(entry.value, dict):
        raise entry.error(path, "must be a mapping of names of cells to their databases")
    found: dict[str, tuple[Entry, CellKeys]] = {}
    for name, inner in entry.value.items():
        at = join(path, name)
        if name == MAIN:
            raise inner.error(
                at, f"{MAIN} is the database that `store:` names; choose another name"
            )
        if not NAME.fullmatch(name):
            raise inner.error(at, "can't be the name of a cell: letters, digits, - and _")
        keys = decode(CellKeys, inner, at)
        for other, (_, known) in found.items():
            if known.number == keys.number:
                raise inner.error(join(at, "number"), f"is the number of {other}, too")
            if known.store == keys.store:
                raise inner.error(join(at, "store"), f"is the database of {other}, too")
        found[name] = (inner, keys)
    return found


def cells_of(
    read: Mapping[str, tuple[Entry, CellKeys]], store: str, snapshots: Path | str, root: Path
) -> dict[str, CellSettings]:
    """Every cell by its name, `main` first; empty for a project in one database."""
    if not read:
        return {}
    found = {MAIN: CellSettings(MAIN, 0, store, snapshots)}
    for name, (entry, keys) in read.items():
        at = join("cells", name)
        if not store.startswith(POSTGRES):
            raise entry.error(at, "cells need `store: postgresql://…`: SQLite is for one host")
        if keys.store == store:
            raise entry.error(join(at, "store"), f"is the database of {MAIN}, too")
        place = _snapshots(keys, name, snapshots, entry, root)
        for other in found.values():
            if str(other.snapshots) == str(place):
                raise entry.error(join(at, "snapshots"), f"is where {other.name} stores, too")
        found[name] = CellSettings(name, keys.number, keys.store, place)
    return found


def _snapshots(
    keys: CellKeys, name: str, usual: Path | str, entry: Entry, root: Path
) -> Path | str:
    if keys.snapshots is None:
        return (
            usual.with_name(f"{usual.name}-{name}")
            if isinstance(usual, Path)
            else f"{usual}-{name}"
        )
    try:
        return parse_snapshots(keys.snapshots, root)
    except ConfigError as error:
        raise entry.error(join(join("cells", name), "snapshots"), error.message) from None


def chosen_cell(cells: Mapping[str, CellSettings], asked: str | None) -> CellSettings | None:
    """The cell that is meant, by default `main`; None for a project in one database."""
    if not cells:
        if asked and asked != MAIN:
            raise ConfigError(
                f"there is no cell {asked:.40}: penstock.yaml has no `cells:`", code="no_cell"
            )
        return None
    found = cells.get(asked or MAIN)
    if found is None:
        hint = nearest(asked or "", cells)
        raise ConfigError(f"penstock.yaml has no cell {asked!r:.40}", hint, code="no_cell")
    return found
