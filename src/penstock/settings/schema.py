"""The JSON Schema of penstock.yaml, made from the Structs that it is read with."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args, get_origin

from penstock.settings.connector import BUILT_IN, find_connector
from penstock.settings.declaration import (
    Key,
    Keys,
    MissingKey,
    Reads,
    Schema,
    TextForm,
    keys_of,
    note,
)
from penstock.settings.kinds import VARIABLE, variable
from penstock.settings.project import ProjectKeys
from penstock.settings.source import SourceKeys

FILE_NAME = "penstock.schema.json"
DRAFT = "http://json-schema.org/draft-07/schema#"
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_SEE = re.compile(r"(;|,)? see (\[[^\]]+\]\([^)]*\)|below)[^;.]*")
_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string"}


def json_schema() -> Schema:
    """Of the file and of its overlays: a source may have its pipeline from elsewhere, so none is required.

    Values with `${NAME}` in them are accepted everywhere, and so is a key without a value.
    """
    made = _Sections()
    top = made.section(ProjectKeys)
    return {"$schema": DRAFT, "title": "penstock.yaml", **top, "definitions": made.definitions}


def modeline(path: str = FILE_NAME) -> str:
    """The line that tells an editor which schema a YAML file has."""
    return f"# yaml-language-server: $schema={path}\n"


def plain_words(markdown: str) -> str:
    """A description without links and without what leads to other places of a page."""
    return _LINK.sub(r"\1", _SEE.sub("", markdown)).strip()


class _Sections:
    """Each section once, under its name."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def ref(self, section: type[Keys]) -> Schema:
        name = section.__name__.removesuffix("Keys").removesuffix("Settings")
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = self.section(section)
        return {"$ref": f"#/definitions/{name}"}

    def section(self, section: type[Keys]) -> Schema:
        keys = keys_of(section)
        made: Schema = {
            "type": ["object", "null"],
            "description": (section.__doc__ or "").partition("\n\n")[0].replace("\n    ", " "),
            "properties": {key.name: self._key(key) for key in keys},
            "additionalProperties": False,
        }
        if section is SourceKeys:
            self._connect(made)
        required = [key.name for key in keys if _is_always_here(key)]
        return {**made, "required": required} if required else made

    def _connect(self, source: Schema) -> None:
        """Add the keys of Penstock's connectors to those of a source, each where its connector is named."""
        source["allOf"] = []
        for name in BUILT_IN:
            keys = keys_of(find_connector(name).Settings)
            own = {key.name: self._key(key) for key in keys}
            named = {"properties": {"connector": {"const": name}}, "required": ["connector"]}
            source["allOf"].append({"if": named, "then": {"properties": own}})
            for key in keys:
                said = source["properties"].setdefault(key.name, {"description": ""})
                words = f"{name}: {plain_words(key.description)}"
                said["description"] += f"; {words}" if said["description"] else words

    def _key(self, key: Key) -> Schema:
        made = _or_nothing(self._shape(key))
        if key.description:
            made["description"] = plain_words(key.description)
        default = None if key.is_required else key.shown(key.default)
        if isinstance(default, (bool, int, float, str)):
            made["default"] = default
        return made

    def _shape(self, key: Key) -> Schema:
        reads, unit = note(key.notes, Reads), note(key.notes, TextForm)
        if reads is not None:
            return dict(reads.schema(self.ref))
        if unit is not None:
            return _text(unit)
        if key.section is not None:
            return self.ref(key.section)
        if get_origin(key.type) is Literal:
            return _or_variable({"enum": list(get_args(key.type))})
        return _plain(key)


def _is_always_here(key: Key) -> bool:
    missing = note(key.notes, MissingKey)
    return key.is_required and not (missing is not None and missing.may_be_elsewhere)


def _or_variable(shape: Schema) -> Schema:
    return {"anyOf": [shape, variable()]}


def _text(unit: TextForm) -> Schema:
    made: Schema = {"type": "string", "examples": [unit.example]}
    return {**made, "pattern": f"{unit.pattern}|{VARIABLE}"} if unit.pattern else made


def _plain(key: Key) -> Schema:
    if key.type is str:
        return {"type": "string", "minLength": 1}
    bounds: dict[str, Any] = {"minimum": key.low, "maximum": key.high}
    limits = {name: bound for name, bound in bounds.items() if bound is not None}
    return {"type": [_PLAIN[key.type], "string"], **limits, "pattern": VARIABLE}


def _or_nothing(shape: Schema) -> Schema:
    """A key without a value counts as not written."""
    if "$ref" in shape:
        return {
            "allOf": [shape]
        }  # a section may be empty; beside $ref, a description would be ignored
    if "anyOf" in shape:
        return {**shape, "anyOf": [*shape["anyOf"], {"type": "null"}]}
    kinds = shape["type"] if isinstance(shape["type"], list) else [shape["type"]]
    return {**shape, "type": [*kinds, "null"]}
