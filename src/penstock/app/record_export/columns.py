"""The columns of an export that has columns: those of a record, and one for each field of its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.schemas.shape import Shape

# What a record has beside its data, and what each of them is.
ABOUT = {
    "key": "string",
    "score": "number",
    "source": "string",
    "run": "integer",
    "version": "integer",
    "updated_at": "time",
    "is_removed": "boolean",
}
# Where data is not a mapping, or a field of it is called like one of the record's own.
DATA = "data"
# Kinds that one column can hold as they are; everything else is JSON as text.
_PLAIN = {
    frozenset({"boolean"}): "boolean",
    frozenset({"integer"}): "integer",
    frozenset({"number"}): "number",
    frozenset({"integer", "number"}): "number",
    frozenset({"string"}): "string",
}


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` is boolean, integer, number, string, time or json: text with any JSON value in it."""

    name: str
    kind: str
    nulls: int = 0


@dataclass(frozen=True, slots=True)
class Columns:
    """All columns, in order. `is_whole`: the data is one of them, and its fields are none."""

    all: Sequence[Column]
    is_whole: bool

    def cells(self, record: Mapping[str, Any]) -> list[Any]:
        """The values of one record in the order of the columns; those of kind json as text."""
        data = record[DATA]
        if self.is_whole or not isinstance(data, dict):
            found = {DATA: data}
        else:
            found = {_name(name): value for name, value in data.items()}
        own = [_cell(found.get(each.name), each.kind) for each in self.all[len(ABOUT) :]]
        return [*(record[name] for name in ABOUT), *own]


def columns_of(shape: Shape, records: int, without_score: int = 0) -> Columns:
    """The columns of data with this shape. A mapping with too many fields is one column of JSON."""
    nulls = {"score": without_score}
    about = [Column(name, kind, nulls.get(name, 0)) for name, kind in ABOUT.items()]
    if shape.full_kinds != {"object"} or shape.is_open:
        empty = records - shape.seen + shape.nulls
        return Columns([*about, Column(DATA, _kind(shape), empty)], is_whole=True)
    own = (
        Column(_name(name), _kind(field), records - field.seen + field.nulls)
        for name, field in shape.fields.items()
    )
    return Columns([*about, *own], is_whole=False)


def _cell(value: Any, kind: str) -> Any:
    if kind == "json" and value is not None:
        return msgspec.json.encode(value).decode()
    return float(value) if kind == "number" and isinstance(value, int) else value


def _kind(shape: Shape) -> str:
    return _PLAIN.get(shape.full_kinds, "json" if shape.full_kinds else "string")


def _name(field: str) -> str:
    return f"{DATA}.{field}" if field in ABOUT else field
