"""The API described: the OpenAPI document, and a page to read of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from penstock.web.api import read_response
from penstock.web.dashboard.page import Visit, page
from penstock.web.openapi import JSON, ROLE, document

if TYPE_CHECKING:
    from starlette.requests import Request

DOCUMENT, PAGE = "/api/openapi.json", "/api"


async def _document(request: Request) -> Response:
    return read_response(request, _of(request))


def _of(request: Request) -> dict[str, Any]:
    return document(request.app.state.access.cookie_name(request))


def _read(visit: Visit) -> dict[str, Any]:
    found = _of(visit.request)
    return {
        "about": found["info"]["description"],
        "nouns": [(each["name"], _operations(found, each["name"])) for each in found["tags"]],
        "schemas": [(name, _shape(each)) for name, each in found["components"]["schemas"].items()],
        "refusals": [
            (name.removeprefix("Refused"), each["description"])
            for name, each in found["components"]["responses"].items()
        ],
    }


def _operations(found: Mapping[str, Any], noun: str) -> list[dict[str, Any]]:
    return [
        _operation(path, method, each)
        for path, methods in found["paths"].items()
        for method, each in methods.items()
        if noun in each["tags"]
    ]


def _operation(path: str, method: str, about: Mapping[str, Any]) -> dict[str, Any]:
    body = about.get("requestBody", {"content": {}})["content"].get(JSON)
    [(kind, answer)] = about["responses"]["200"]["content"].items()
    return {
        "id": about["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": about["summary"],
        "description": about.get("description", ""),
        "role": about[ROLE],
        "parameters": [{**each, "words": _words(each["schema"])} for each in about["parameters"]],
        "body": None if body is None else body["schema"]["$ref"].rpartition("/")[2],
        "kind": kind,
        "answer": _words(answer.get("x-penstock-data", answer["schema"])),
    }


def _shape(schema: Mapping[str, Any]) -> dict[str, Any]:
    required = schema.get("required", ())
    return {
        "description": schema.get("description", ""),
        "fields": [
            (name, _words(each), name in required, each.get("description", ""))
            for name, each in schema.get("properties", {}).items()
        ],
    }


# Pieces of text; a piece that is the name of a schema is a link to it.
Words = list[tuple[str, bool]]


def _words(schema: Mapping[str, Any]) -> Words:
    """A schema in words, such as `list of RunView`."""
    if "$ref" in schema:
        return [(schema["$ref"].rpartition("/")[2], True)]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _joined([_words(each) for each in schema[key]], " or ")
    if "enum" in schema:
        return [(", ".join(_json(each) for each in schema["enum"]), False)]
    if "const" in schema:
        return [(_json(schema["const"]), False)]
    kind = schema.get("type", "anything")
    if kind == "array":
        return [("list of ", False), *_words(schema.get("items") or {})]
    if kind == "object":
        return _object(schema)
    kinds = kind if isinstance(kind, list) else [kind]
    text = " or ".join(kinds) + (f" ({schema['format']})" if "format" in schema else "")
    return [(text + _bounds(schema), False)]


def _object(schema: Mapping[str, Any]) -> Words:
    if schema.get("maxProperties") == 0:
        return [("{}", False)]
    inner = schema.get("additionalProperties")
    if isinstance(inner, Mapping):
        return [("object of ", False), *_words(inner)]
    fields = schema.get("properties", {}).items()
    if not fields:
        return [("object", False)]
    pieces: list[Words] = [[(f"{name}: ", False), *_words(each)] for name, each in fields]
    return [("{", False), *_joined(pieces, ", "), ("}", False)]


def _bounds(schema: Mapping[str, Any]) -> str:
    said = [
        f"{words} {_json(schema[key])}"
        for key, words in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "more than"),
            ("maximum", "at most"),
            ("maxLength", "longest"),
        )
        if key in schema
    ]
    if "default" in schema:
        said.append(f"default {_json(schema['default'])}")
    return f", {', '.join(said)}" if said else ""


def _joined(pieces: list[Words], by: str) -> Words:
    made: Words = []
    for each in pieces:
        made += [(by, False), *each] if made else each
    return made


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


ROUTES = [
    Route(DOCUMENT, _document, methods=["GET"]),
    Route(PAGE, page("api.html", _read), methods=["GET"]),
]
