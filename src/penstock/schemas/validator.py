"""Validation of data by JSON Schema, compiled once: each record then costs a few calls and no search.

What a check finds is the path of a field and what is wrong with it, and never the value: that may be secret.
Time is bounded by the size of the data times that of the schema. Patterns are the exception that could break
this, so those that can take long are refused when the schema is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.schemas.patterns import pattern_check
from penstock.schemas.problems import Found, SchemaError, found, join_path
from penstock.schemas.shape import kind_of

Check = Callable[[Any], Found]
DEEPEST = 64
WORDS = {
    "null": "null",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "string": "text",
    "array": "a list",
    "object": "an object",
}
# What says something about a schema and checks nothing.
ANNOTATIONS = frozenset(
    "$schema $id $comment $defs definitions title description default examples deprecated readOnly "
    "writeOnly format".split()
)
BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (lambda value, bound: value >= bound, "must be at least {}"),
    "maximum": (lambda value, bound: value <= bound, "must be at most {}"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "must be more than {}"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "must be less than {}"),
}
SIZES: dict[str, tuple[Any, Callable[[int, Any], bool], str]] = {
    "minLength": (str, lambda size, bound: size >= bound, "must have at least {} characters"),
    "maxLength": (str, lambda size, bound: size <= bound, "must have at most {} characters"),
    "minItems": (list, lambda size, bound: size >= bound, "must have at least {} items"),
    "maxItems": (list, lambda size, bound: size <= bound, "must have at most {} items"),
    "minProperties": (dict, lambda size, bound: size >= bound, "must have at least {} fields"),
    "maxProperties": (dict, lambda size, bound: size <= bound, "must have at most {} fields"),
}


class Validator:
    """A schema, ready to be used.

    `partial` is for data that is merged into what is there: nothing is required of it.
    """

    def __init__(self, schema: Any) -> None:
        self._compiler = _Compiler(schema)
        self._check = self._compiler.check(schema, "")
        self._partial: Check | None = None
        self._schema = schema

    def problem(self, value: Any, *, partial: bool = False) -> str | None:
        """`price: must be a number, not text`; None if it fits."""
        wrong = (self._partial_check() if partial else self._check)(value)
        return None if wrong is None else join_path(wrong)

    def _partial_check(self) -> Check:
        if self._partial is None:
            schema = self._schema
            if isinstance(schema, dict):
                schema = {key: each for key, each in schema.items() if key != "required"}
            self._partial = self._compiler.check(schema, "")
        return self._partial


class _Compiler:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._by_ref: dict[str, list[Check]] = {}
        self._depth = 0

    def check(self, schema: Any, at: str) -> Check:
        """The check of one part of the schema; `at` is where it stands in it."""
        if isinstance(schema, bool):
            return _anything if schema else _nothing
        if not isinstance(schema, dict):
            raise SchemaError(at, "must be an object, true or false")
        checks = []
        for keyword, wanted in schema.items():
            if keyword in ANNOTATIONS:
                continue
            make = _MAKERS.get(keyword)
            if make is None:
                raise SchemaError(at, f"{keyword!r} is not supported")
            made = make(self, wanted, schema, f"{at}/{keyword}")
            if made is not None:
                checks.append(made)
        return _all(checks)

    def type(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check:
        names = [wanted] if isinstance(wanted, str) else wanted
        if not isinstance(names, list) or not names or not set(names) <= WORDS.keys():
            raise SchemaError(at, f"must be of {', '.join(WORDS)}")
        allowed = {*names, *(("integer",) if "number" in names else ())}
        kinds = frozenset(allowed | ({"big"} if "integer" in allowed else set()))
        words = " or ".join(WORDS[name] for name in names)
        has_integer = "integer" in names and "number" not in names

        def check(value: Any) -> Found:
            kind = kind_of(value)
            if kind in kinds or (has_integer and kind == "number" and value.is_integer()):
                return None
            return found(f"must be {words}, not {WORDS.get(kind, 'an integer')}")

        return check

    def properties(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check:
        if not isinstance(wanted, dict):
            raise SchemaError(at, "must be an object")
        checks = [(name, self.check(each, f"{at}/{name}")) for name, each in wanted.items()]

        def check(value: Any) -> Found:
            if type(value) is not dict:
                return None
            for name, inner in checks:
                if name in value and (wrong := inner(value[name])) is not None:
                    return wrong.inside(name)
            return None

        return check

    def required(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check:
        if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
            raise SchemaError(at, "must be a list of names")

        def check(value: Any) -> Found:
            if type(value) is dict:
                for name in wanted:
                    if name not in value:
                        return found("is missing").inside(name)
            return None

        return check

    def additional(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check | None:
        known = frozenset(schema.get("properties") or ())
        if wanted is True:
            return None
        inner = self.check(wanted, at) if wanted is not False else None

        def check(value: Any) -> Found:
            if type(value) is not dict or value.keys() <= known:
                return None
            for name in value:
                if name in known:
                    continue
                wrong = found("is not a known field") if inner is None else inner(value[name])
                if wrong is not None:
                    return wrong.inside(name)
            return None

        return check

    def items(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check:
        inner = self.check(wanted, at)

        def check(value: Any) -> Found:
            if type(value) is list:
                for number, each in enumerate(value):
                    if (wrong := inner(each)) is not None:
                        return wrong.inside(str(number))
            return None

        return check

    def enum(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check:
        if not isinstance(wanted, list):
            raise SchemaError(at, "must be a list")
        return lambda value: (
            None
            if any(_is_same(value, each) for each in wanted)
            else found("is none of its values")
        )

    def const(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check:
        return lambda value: None if _is_same(value, wanted) else found("is not its only value")

    def bound(self, keyword: str, wanted: Any, at: str) -> Check:
        _refuse_no_number(wanted, at)
        holds, words = BOUNDS[keyword]
        text = words.format(f"{wanted:g}")
        return lambda value: (
            found(text) if type(value) in (int, float) and not holds(value, wanted) else None
        )

    def size(self, keyword: str, wanted: Any, at: str) -> Check:
        _refuse_no_number(wanted, at)
        kind, holds, words = SIZES[keyword]
        text = words.format(wanted)
        return lambda value: (
            found(text) if type(value) is kind and not holds(len(value), wanted) else None
        )

    def multiple(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check:
        _refuse_no_number(wanted, at)
        if wanted <= 0:
            raise SchemaError(at, "must be more than 0")
        return lambda value: (
            found(f"must be a multiple of {wanted:g}")
            if type(value) in (int, float) and value % wanted
            else None
        )

    def pattern(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check:
        return pattern_check(wanted, at)

    def all_of(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check:
        return _all(self._each(wanted, at))

    def any_of(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check:
        checks = self._each(wanted, at)

        def check(value: Any) -> Found:
            wrong: Found = found("fits none of its forms")
            for inner in checks:
                wrong = inner(value)
                if wrong is None:
                    return None
            return wrong if len(checks) == 1 else found("fits none of its forms")

        return check

    def one_of(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check:
        checks = self._each(wanted, at)

        def check(value: Any) -> Found:
            fits = sum(inner(value) is None for inner in checks)
            return None if fits == 1 else found(f"fits {fits} of its forms, and must fit one")

        return check

    def negated(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check:
        inner = self.check(wanted, at)
        return lambda value: (
            found("has a form that it must not have") if inner(value) is None else None
        )

    def reference(self, wanted: Any, schema: Mapping[str, Any], at: str) -> Check:
        if not isinstance(wanted, str) or not wanted.startswith("#"):
            raise SchemaError(at, "must begin with #: only this file is read")
        if wanted not in self._by_ref:
            made = self._by_ref[wanted] = []
            made.append(self.check(self._found(wanted, at), wanted.removeprefix("#")))
        held = self._by_ref[wanted]

        def check(value: Any) -> Found:
            # It may lead to itself: only as deep as data can be, and no deeper than we go.
            if self._depth >= DEEPEST:
                return found(f"is nested deeper than {DEEPEST} levels")
            self._depth += 1
            try:
                return held[0](value)
            finally:
                self._depth -= 1

        return check

    def _found(self, reference: str, at: str) -> Any:
        here = self._root
        for part in reference.removeprefix("#").strip("/").split("/"):
            if not part:
                continue
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(here, dict) or name not in here:
                raise SchemaError(at, f"there is no {reference}")
            here = here[name]
        return here

    def _each(self, wanted: Any, at: str) -> list[Check]:
        if not isinstance(wanted, list) or not wanted:
            raise SchemaError(at, "must be a list of schemas")
        return [self.check(each, f"{at}/{number}") for number, each in enumerate(wanted)]


Maker = Callable[[_Compiler, Any, Mapping[str, Any], str], "Check | None"]
_MAKERS: dict[str, Maker] = {
    "type": _Compiler.type,
    "properties": _Compiler.properties,
    "required": _Compiler.required,
    "additionalProperties": _Compiler.additional,
    "items": _Compiler.items,
    "enum": _Compiler.enum,
    "const": _Compiler.const,
    "multipleOf": _Compiler.multiple,
    "pattern": _Compiler.pattern,
    "allOf": _Compiler.all_of,
    "anyOf": _Compiler.any_of,
    "oneOf": _Compiler.one_of,
    "not": _Compiler.negated,
    "$ref": _Compiler.reference,
}


def _bounds(name: str) -> Maker:
    return lambda compiler, wanted, schema, at: compiler.bound(name, wanted, at)


def _sizes(name: str) -> Maker:
    return lambda compiler, wanted, schema, at: compiler.size(name, wanted, at)


_MAKERS |= {name: _bounds(name) for name in BOUNDS}
_MAKERS |= {name: _sizes(name) for name in SIZES}


def _all(checks: list[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]

    def check(value: Any) -> Found:
        for inner in checks:
            if (wrong := inner(value)) is not None:
                return wrong
        return None

    return check if checks else _anything


def _anything(value: Any) -> Found:
    return None


def _nothing(value: Any) -> Found:
    return found("must not be there")


def _is_same(value: Any, other: Any) -> bool:
    """As JSON has it: 1 is 1.0, and neither is true."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _refuse_no_number(wanted: Any, at: str) -> None:
    if isinstance(wanted, bool) or not isinstance(wanted, (int, float)):
        raise SchemaError(at, "must be a number")
