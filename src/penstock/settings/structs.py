"""Structs of other rooms, read from a YAML file: what is wrong is told with its file, line and key.

A `Keys` section reads each of its keys itself. Here msgspec does it, and what it says is put into words and
given the place of the entry that it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from penstock.errors import ConfigError, nearest
from penstock.settings.document import Entry, join
from penstock.settings.section import plain

T = TypeVar("T", bound=msgspec.Struct)

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`$", re.DOTALL)
_TYPE = re.compile(r"`(\w+(?: \| \w+)*)`")
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}


def read_struct(kind: type[T], entry: Entry, path: str = "") -> T:
    """What the Struct makes of the entry; the first mistake in it is raised with its place."""
    if not isinstance(entry.value, dict):
        raise entry.error(path, "must be a mapping of keys to values")
    try:
        return msgspec.convert(plain(entry), kind)
    except msgspec.ValidationError as error:
        raise _placed(kind, entry, path, str(error)) from None


def entry_at(entry: Entry, place: str) -> Entry | None:
    """The entry at a place such as `dumps[0].country`; None if there is none."""
    found: Entry | None = entry
    for name, index in _STEP.findall(f".{place}"):
        found = _below(found, name or index)
    return found


def nearest_entry(entry: Entry, place: str) -> Entry:
    """The same; where there is none, what it would be in."""
    found = entry
    for name, index in _STEP.findall(f".{place}"):
        inner = _below(found, name or index)
        if inner is None:
            return found
        found = inner
    return found


def _placed(kind: type[T], entry: Entry, path: str, said: str) -> ConfigError:
    problem, _, place = said.partition(" - at `$")
    steps = [name or index for name, index in _STEP.findall(place.rstrip("`"))]
    at, found = path, entry
    of: inspect.Type | None = inspect.type_info(kind)
    for number, step in enumerate(steps):
        name = _culprit(kind, entry, steps[:number], found, said) if step == "..." else step
        inner = _below(found, name)
        if inner is None:
            break
        at = join(at, name) if isinstance(found.value, dict) else f"{at}[{name}]"
        found, of = inner, _type_below(of, name)
    return _in_words(problem, found, at, of)


def _below(entry: Entry | None, name: str) -> Entry | None:
    if entry is None:
        return None
    if isinstance(entry.value, dict):
        return entry.value.get(name)
    if isinstance(entry.value, list) and name.isdecimal() and int(name) < len(entry.value):
        return entry.value[int(name)]
    return None


def _culprit(kind: type[T], top: Entry, before: list[str], mapping: Entry, said: str) -> str:
    """The key of a mapping that msgspec does not name: the one without which something else is wrong."""
    document = plain(top)
    below = document
    for step in before:
        below = below[int(step)] if isinstance(below, list) else below.get(step, {})
    for name in list(below):
        kept = below.pop(name)
        try:
            msgspec.convert(document, kind)
        except msgspec.ValidationError as error:
            if str(error) != said:
                return str(name)
        else:
            return str(name)
        below[name] = kept
    return next(iter(mapping.value), "") if isinstance(mapping.value, dict) else ""


def _type_below(of: inspect.Type | None, name: str) -> inspect.Type | None:
    of = _peeled(of)
    if isinstance(of, inspect.StructType):
        return next((each.type for each in of.fields if each.encode_name == name), None)
    if isinstance(of, inspect.DictType):
        return of.value_type
    if isinstance(of, (inspect.ListType, inspect.VarTupleType)):
        return of.item_type
    return None


def _peeled(of: inspect.Type | None) -> inspect.Type | None:
    """The type without its notes, and without `| None`."""
    while isinstance(of, (inspect.Metadata, inspect.UnionType)):
        if isinstance(of, inspect.Metadata):
            of = of.type
            continue
        kinds = [each for each in of.types if not isinstance(each, inspect.NoneType)]
        if len(kinds) != 1:
            return None
        of = kinds[0]
    return of


def _in_words(problem: str, entry: Entry, path: str, of: inspect.Type | None) -> ConfigError:
    of = _peeled(of)
    if unknown := _UNKNOWN.match(problem):
        inner, name = _below(entry, unknown[1]) or entry, unknown[1]
        return inner.error(join(path, name), f"unknown key, {nearest(name, _fields(of))}")
    if missing := _MISSING.match(problem):
        return entry.error(join(path, missing[1]), "is missing")
    if problem.startswith("Invalid enum value") and isinstance(of, inspect.LiteralType):
        known = [str(each) for each in of.values]
        return entry.error(
            path, f"can't be {entry.value!r:.60}, {nearest(str(entry.value), known)}"
        )
    said = _TYPE.sub(lambda match: _named(match[1]), problem)
    return entry.error(
        path, said.replace("Expected ", "must be ", 1).replace(", got ", ", not ", 1)
    )


def _fields(of: inspect.Type | None) -> Iterable[str]:
    return [each.encode_name for each in of.fields] if isinstance(of, inspect.StructType) else ()


def _named(types: str) -> str:
    return " or ".join(_WORDS.get(each, each) for each in types.split(" | "))


def struct_schema(kind: type[msgspec.Struct], title: str) -> dict[str, Any]:
    """The JSON Schema of a file that is read as this Struct. A key without a value is not accepted."""
    made: dict[str, Any] = msgspec.json.schema(kind)
    definitions: Mapping[str, Any] = made["$defs"]
    top = definitions[kind.__name__]
    rest = {name: each for name, each in definitions.items() if name != kind.__name__}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **top,
        "title": title,
        "$defs": rest,
    }
