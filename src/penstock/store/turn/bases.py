"""Bases: an attempt that would overwrite what others wrote since it read a record does not commit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.jobs.effects import Basis, Effects
from penstock.store.database import Database
from penstock.store.record_rows import Present, place_of, read_present, where_of


def are_kept(db: Database, effects: Effects, before: Iterable[Effects]) -> bool:
    """Whether all records that these effects are based on are as they were read; locks them.

    `before` is what the same transaction writes first: a record that is saved there is not compared again.
    """
    wanted = {place_of(basis.collection, basis.key): basis for basis in effects.bases}
    if any(where_of(save) in wanted for each in before for save in each.saves):
        return False
    present = read_present(db, wanted)
    return all(_is_kept(present.get(where), basis) for where, basis in wanted.items())


def _is_kept(record: Present | None, basis: Basis) -> bool:
    fields: dict[str, Any] | None = msgspec.json.decode(basis.fields)
    if record is None or record.is_removed:
        return fields is None
    data = msgspec.json.decode(record.data)
    if fields is None or not isinstance(data, dict):
        return False
    return all(data.get(name) == value for name, value in fields.items())
