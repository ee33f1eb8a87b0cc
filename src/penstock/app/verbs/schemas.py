"""Schemas of what the API is given and answers with, made from the Structs of parameters and views."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union, get_args, get_origin

import msgspec

from penstock.app.views.view import Page
from penstock.errors import PenstockError

REFERENCE = "#/components/schemas/{name}"
VIEWS = "penstock.app.views."
HIDDEN = "not part of the JSON"
Schema = dict[str, Any]
NOTHING: Schema = {"type": "object", "maxProperties": 0}
NEXT: Schema = {"type": ["string", "null"], "description": "the cursor of the next page"}
PROBLEM: Schema = {
    "title": "Problem",
    "description": "Why a request is refused (RFC 9457), with a stable code and the verb that helps.",
    "type": "object",
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "code": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},
        "hint": {"type": "string"},
        "remedy": {
            "type": "object",
            "properties": {
                "verb": {"type": "string"},
                "target": {"type": ["string", "integer", "null"]},
            },
            "required": ["verb", "target"],
        },
    },
    "required": ["type", "title", "status", "detail", "code"],
}
CHANGED: Schema = {
    "title": "Changed",
    "description": "Whether the act has changed anything: false if it was so already.",
    "type": "object",
    "properties": {"changed": {"type": "boolean"}},
    "required": ["changed"],
}
COUNT: Schema = {
    "title": "Count",
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 0}},
    "required": ["count"],
}
FIXED = {"Problem": PROBLEM, "Changed": CHANGED, "Count": COUNT}


class Schemas:
    """The schemas of many types, and the components that they refer to."""

    def __init__(self, bodies: Sequence[type], answers: Sequence[Any]) -> None:
        leaves = list(dict.fromkeys(leaf for each in answers for leaf in _leaves(each)))
        made, found = _components([*bodies, *leaves])
        own, given = made[: len(bodies)], made[len(bodies) :]
        self._bodies = dict(zip(bodies, own, strict=True))
        self._leaves = dict(zip(leaves, given, strict=True))
        taken = {each["$ref"].rpartition("/")[2] for each in own if "$ref" in each}
        shown = {
            short(name): each if name in taken else as_shown(each) for name, each in found.items()
        }
        self.components: dict[str, Schema] = {**FIXED, **shown}

    def body(self, kind: type) -> Schema:
        return self._bodies[kind]

    def answer(self, kind: Any) -> Schema:
        """What a verb that answers with this type is seen to answer."""
        if kind is bool:
            return _fixed("Changed")
        if kind is int or get_origin(kind) is Iterator:
            return _fixed("Count")
        if kind is type(None):
            return NOTHING
        members = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else ()
        if type(None) in members:
            [other] = [each for each in members if each is not type(None)]
            return {"anyOf": [self._leaf(other), NOTHING]}
        if get_origin(kind) in _LISTS:
            return _list_of(self._leaf(get_args(kind)[0]), get_origin(kind) is Page)
        return self._leaf(kind)

    def _leaf(self, kind: Any) -> Schema:
        shown: Schema = as_shown(self._leaves[kind])
        return shown


def properties_of(kind: type[msgspec.Struct]) -> tuple[dict[str, Schema], list[str]]:
    """The schemas of a Struct's fields by name, and which of them are required."""
    _, found = _components([kind])
    [made] = found.values()
    return {name: _without_null(each) for name, each in made["properties"].items()}, made[
        "required"
    ]


def as_shown(schema: Any) -> Any:
    """As views write it: times are text, and fields for front ends are left out."""
    if isinstance(schema, list):
        return [as_shown(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {**schema, "$ref": short(schema["$ref"])}
    if schema.get("type") == "number" and schema.get("format") == "date-time":
        return {**schema, "type": ["string", "null"]}
    made = {key: as_shown(value) for key, value in schema.items() if key != "default"}
    pieces = made.get("prefixItems")
    if isinstance(pieces, list) and all(each == pieces[0] for each in pieces):
        # A pair of numbers is a list of two: every tool can read that.
        made["items"] = made.pop("prefixItems")[0]
    properties = made.get("properties")
    if isinstance(properties, dict) and "title" in made:
        hidden = {name for name, each in properties.items() if each.get("description") == HIDDEN}
        made["properties"] = {name: properties[name] for name in properties if name not in hidden}
        made["required"] = [each for each in made.get("required", ()) if each not in hidden]
    return made


def short(name: str) -> str:
    """Views of one name are told apart by their module; where it is, nobody needs to know."""
    return name.replace(VIEWS, "")


_LISTS: tuple[Any, ...] = (Page, Sequence, list, tuple)


def _leaves(kind: Any) -> Iterator[Any]:
    """The types within an answer that have schemas of their own."""
    if kind in (bool, int, type(None)) or get_origin(kind) is Iterator:
        return
    if get_origin(kind) in (Union, types.UnionType, *_LISTS):
        yield from (each for each in get_args(kind) if each is not type(None))
    else:
        yield kind


def _components(kinds: Sequence[Any]) -> tuple[tuple[Schema, ...], dict[str, Schema]]:
    return msgspec.json.schema_components(kinds, schema_hook=_hook, ref_template=REFERENCE)


def _hook(kind: type) -> Schema:
    if issubclass(kind, PenstockError):
        return _fixed("Problem")
    raise NotImplementedError


def _fixed(name: str) -> Schema:
    return {"$ref": REFERENCE.format(name=name)}


def _list_of(item: Schema, is_page: bool) -> Schema:
    return {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": item},
            "next": NEXT if is_page else {"type": "null"},
        },
        "required": ["items", "next"],
    }


def _without_null(schema: Schema) -> Schema:
    """In a path or a query nothing is null: it is left out."""
    given: Mapping[str, Any] = schema
    if "anyOf" in given:
        left = [each for each in given["anyOf"] if each != {"type": "null"}]
        rest = {key: value for key, value in given.items() if key not in ("anyOf", "default")}
        given = {**left[0], **rest} if len(left) == 1 else {**rest, "anyOf": left}
    return {key: value for key, value in given.items() if key != "default" or value is not None}
