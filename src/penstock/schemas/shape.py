"""The shape of data, taken in value by value: which fields there are, of which kinds, how often empty."""

from __future__ import annotations

from typing import Any

import msgspec

# A source may invent names for fields without end: what is beyond is counted, and not looked at.
MOST_FIELDS = 1000
DEEPEST = 8
SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**63 - 1


class Shape(msgspec.Struct):
    """How often a value was there, and of which kinds: null, boolean, integer, big, number, string, array,
    object. A big integer is one that 64 bits can't hold. `is_open`: there were more fields than are kept.
    """

    seen: int = 0
    kinds: dict[str, int] = {}
    fields: dict[str, Shape] = {}
    items: Shape | None = None
    is_open: bool = False

    def add(self, value: Any, depth: int = 0) -> None:
        """Take in one value."""
        self.seen += 1
        kind = kind_of(value)
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if kind == "object":
            self._add_fields(value, depth)
        elif kind == "array" and depth < DEEPEST:
            if self.items is None:
                self.items = Shape()
            for each in value[:MOST_FIELDS]:
                self.items.add(each, depth + 1)

    def _add_fields(self, value: dict[str, Any], depth: int) -> None:
        fields = self.fields
        for name, inner in value.items():
            known = fields.get(name)
            if known is None:
                if depth >= DEEPEST or len(fields) >= MOST_FIELDS:
                    self.is_open = True
                    continue
                known = fields[name] = Shape()
            known.add(inner, depth + 1)

    @property
    def full_kinds(self) -> frozenset[str]:
        """The kinds of what was not empty."""
        return frozenset(self.kinds) - {"null"}

    @property
    def nulls(self) -> int:
        return self.kinds.get("null", 0)


def kind_of(value: Any) -> str:
    """What JSON calls a value of this type."""
    kind = _KINDS.get(type(value), "string")
    if kind == "integer" and not SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
        return "big"
    return kind


_KINDS = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    tuple: "array",
    dict: "object",
}
