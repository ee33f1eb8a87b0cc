"""What all views have in common: fields by name, and how programs read them as JSON."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Generic, TypeVar, get_type_hints

import msgspec

from penstock.clock import iso

_TIME = msgspec.Meta(extra_json_schema={"type": "string", "format": "date-time"})
# Seconds since the epoch; as JSON, text in UTC to the millisecond. 0 is no time at all.
Time = Annotated[float, _TIME]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all views. Subclasses are `frozen=True, kw_only=True` too.

    A field whose JSON name is not a Python name has both: `start: Time = msgspec.field(name="from")`.
    One that is there only sometimes is `| msgspec.UnsetType = msgspec.UNSET`.
    """

    def as_json(self) -> dict[str, Any]:
        """Its fields under their JSON names, in their order, with times as text."""
        times = _time_fields(type(self))
        shown = {}
        for name, encoded in zip(
            self.__struct_fields__, self.__struct_encode_fields__, strict=True
        ):
            value = getattr(self, name)
            if value is not msgspec.UNSET:
                shown[encoded] = iso(value) if name in times else _plain(value)
        return shown


@cache
def _time_fields(kind: type[View]) -> frozenset[str]:
    hints = get_type_hints(kind, include_extras=True)
    return frozenset(name for name, hint in hints.items() if _is_time(hint))


def _is_time(hint: Any) -> bool:
    """Whether it is `Time`, or `Time | None`."""
    if any(each is _TIME for each in getattr(hint, "__metadata__", ())):
        return True
    return any(_is_time(inner) for inner in getattr(hint, "__args__", ()))


def _plain(value: Any) -> Any:
    if isinstance(value, View):
        return value.as_json()
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value if isinstance(value, (str, int, float, type(None))) else msgspec.to_builtins(value)


Item = TypeVar("Item")


class Page(msgspec.Struct, Generic[Item], frozen=True):
    """Some of a list, and the cursor of what comes next: None at the end of the list."""

    items: list[Item]
    next: str | None = None
