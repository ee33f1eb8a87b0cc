"""The schemas of collections: what is saved must fit them, and its fields are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from penstock.jobs.effects.fields import add_fields
from penstock.schemas.models import ModelCheck, check_of
from penstock.schemas.shape import kind_of
from penstock.schemas.tombstones import is_tombstone

if TYPE_CHECKING:
    from penstock.pipeline.attempt import Attempt

_decode = msgspec.json.Decoder().decode
# Each schema is compiled once in a process; the schema itself is held, so that its id is its own.
_compiled: dict[int, tuple[Any, ModelCheck]] = {}


def misfit(attempt: Attempt, collection: str, encoded: bytes, *, is_part: bool) -> str | None:
    """Why a record can't be saved, with the path of the field; None if it fits, or there is no schema.

    A tombstone fits every schema: a record that is gone must not stay because its tombstone has no fields.
    """
    configured = attempt.source.schemas.get(collection)
    named = attempt.stage.schemas.get(collection)
    if configured is None and named is None:
        return None
    value = _decode(encoded)
    if is_tombstone(value):
        return None
    add_fields(attempt.effects.fields, collection, value, kind_of)
    if configured is not None and (problem := _check(configured)(value, is_part)) is not None:
        return problem
    return None if named is None else named(value, is_part)


def _check(schema: Any) -> ModelCheck:
    found = _compiled.get(id(schema))
    if found is None:
        found = _compiled[id(schema)] = (schema, check_of(schema))
    return found[1]
