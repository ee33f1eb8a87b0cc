"""From the shape of what was seen to a JSON Schema."""

from __future__ import annotations

from typing import Any

from penstock.schemas.shape import Shape

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {"big": "integer"}
_ORDER = ("object", "array", "string", "integer", "number", "boolean", "null")


def schema_of(shape: Shape) -> dict[str, Any]:
    """The schema that everything in this shape fits: types, fields, and which of them were always there."""
    return {"$schema": DIALECT, **_part(shape)}


def _part(shape: Shape) -> dict[str, Any]:
    kinds = {_TYPES.get(kind, kind) for kind in shape.kinds}
    if "number" in kinds:
        kinds.discard("integer")  # every integer is a number
    types = [kind for kind in _ORDER if kind in kinds]
    found: dict[str, Any] = {}
    if types:
        found["type"] = types[0] if len(types) == 1 else types
    if "object" in kinds:
        found |= _fields(shape)
    if shape.items is not None and shape.items.seen:
        found["items"] = _part(shape.items)
    return found


def _fields(shape: Shape) -> dict[str, Any]:
    found: dict[str, Any] = {
        "properties": {name: _part(field) for name, field in shape.fields.items()}
    }
    objects = shape.kinds["object"]
    if required := [name for name, field in shape.fields.items() if field.seen == objects]:
        found["required"] = required
    return found
