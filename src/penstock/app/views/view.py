"""What all views have in common: fields by name, and how programs read them as JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Generic, TypeVar, get_origin, get_type_hints

import msgspec

from penstock.clock import iso

_TIME = msgspec.Meta(extra_json_schema={"type": "string", "format": "date-time"})
_HIDDEN = msgspec.Meta(description="not part of the JSON")
# Seconds since the epoch; as JSON, text in UTC to the millisecond. 0 is no time at all.
Time = Annotated[float, _TIME]
Kind = TypeVar("Kind")
# What front ends need to phrase something, and programs that read JSON are not shown.
Hidden = Annotated[Kind, _HIDDEN]
_KEY, _TEXT = msgspec.Meta(extra={"content": "key"}), msgspec.Meta(extra={"content": "text"})
# What a source brought: the key or address of an item, and texts that may quote it. Of a private source,
# the first is shown as a hash and the second not at all; see app/privacy.py.
ContentKey = Annotated[Kind, _KEY]
Content = Annotated[Kind, _TEXT]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all views. Subclasses are `frozen=True, kw_only=True` too.

    A field has the name of the row's column; where `--json` prints another one, it has both:
    `id: int = msgspec.field(name="run")`. One that is there only sometimes is
    `| msgspec.UnsetType = msgspec.UNSET`.
    """

    def may_quote(self) -> bool:
        """Whether its texts may quote what a source brought."""
        return True

    def as_json(self) -> dict[str, Any]:
        """Its fields under their JSON names, in their order, with times as text."""
        shown = {}
        for name, encoded, shape in _json_fields(type(self)):
            value = getattr(self, name)
            if value is not msgspec.UNSET:
                shown[encoded] = shape(value)
        return shown


@cache
def _json_fields(kind: type[View]) -> list[tuple[str, str, Callable[[Any], Any]]]:
    """Each field that is shown: its name here and as JSON, and what makes JSON of its value."""
    hints = get_type_hints(kind, include_extras=True)
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    return [
        (name, encoded, _shape_of(hints[name]))
        for name, encoded in names
        if not _has(hints[name], _HIDDEN)
    ]


@cache
def content_of(kind: type[View]) -> dict[str, str]:
    """The fields that hold content (`key`, `text`), and those that hold views which may (`views`)."""
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if _has(hint, _KEY) or _has(hint, _TEXT):
            found[name] = "key" if _has(hint, _KEY) else "text"
        elif any(content_of(inner) for inner in _views_in(hint)):
            found[name] = "views"
    return found


@cache
def source_field(kind: type[View]) -> str:
    """The field that names the source of a view; empty if none does."""
    names = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    return dict(names).get("source", "")


def _views_in(hint: Any) -> list[type[View]]:
    if isinstance(hint, type) and issubclass(hint, View):
        return [hint]
    return [each for inner in getattr(hint, "__args__", ()) for each in _views_in(inner)]


def _shape_of(hint: Any) -> Callable[[Any], Any]:
    # A record's data may be large: only what can hold views is gone through piece by piece.
    if get_origin(hint) is list and _has(hint, _TIME):
        return lambda times: [iso(at) for at in times]
    if _has(hint, _TIME):
        return _times if get_origin(hint) is dict else iso
    return _plain if _holds_views(hint) else msgspec.to_builtins


def _times(found: dict[str, float]) -> dict[str, str | None]:
    return {name: iso(at) for name, at in found.items()}


def _holds_views(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, View):
        return True
    return any(_holds_views(inner) for inner in getattr(hint, "__args__", ()))


def _has(hint: Any, mark: msgspec.Meta) -> bool:
    """Whether a hint has this mark, on itself or, as in `Time | None`, within."""
    if any(each is mark for each in getattr(hint, "__metadata__", ())):
        return True
    return any(_has(inner, mark) for inner in getattr(hint, "__args__", ()))


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
