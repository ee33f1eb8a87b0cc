"""docs/python-views.md: the classes that verbs return and take, with their fields."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import groupby
from typing import Any

import msgspec

from docs.generators.signatures import about, cell, classes_in, plain_type, value
from docs.generators.verbs import all_verbs

HEAD = """\
# Python views

<!-- Written by `make reference` from the classes; a test holds it equal. -->

What the verbs of the [Python reference](python-reference.md) return, and the filters they take, by module.
`view.as_json()` is what the command prints with `--json`: the fields in this order, under the name in the
column "in JSON" if there is one. "–" is not in the JSON, "not always" only where it applies. A `Time` is a
float, in seconds since the epoch; in JSON it is text in UTC.
"""
PAGE = "python-views.md"
HIDDEN = re.compile(r"Hidden\[(.*)\]")
UNSET = " | UnsetType"


def page() -> str:
    parts = [HEAD]
    for module, found in groupby(documented(), key=lambda each: each.__module__):
        parts.append(f"## {_title(module)}\n\nIn `{module}`.\n")
        for each in found:
            parts += [f"### {_name(each)}\n", f"{about_class(each)}\n", *fields_table(each)]
    return "\n".join(parts).rstrip() + "\n"


def _title(module: str) -> str:
    *_, room, last = module.split(".")
    return last if room == "views" else f"{room}.{last}".removeprefix("penstock.")


@cache
def documented() -> tuple[type, ...]:
    """Every class with fields that a verb takes or returns: the views first, by module and name."""
    found = reached_from(_annotations(all_verbs()))
    order = sorted(found, key=lambda each: (each.__module__, each.__name__))
    return tuple(sorted(order, key=lambda each: ".app.views." not in each.__module__))


def _annotations(functions: Iterable[Callable[..., Any]]) -> Iterator[tuple[Any, str]]:
    for each in functions:
        for annotation in inspect.get_annotations(each).values():
            yield annotation, each.__module__


def reached_from(annotations: Iterable[tuple[Any, str]]) -> list[type]:
    """The classes with fields that these annotations of these modules lead to."""
    found: dict[type, None] = {}
    left = list(annotations)
    while left:
        for each in classes_in(*left.pop()):
            if has_fields(each) and each not in found:
                found[each] = None
                left.extend((kind, home) for _, kind, home in hints(each))
    return list(found)


def has_fields(kind: type) -> bool:
    """The settings have a page of their own, by key."""
    home = kind.__module__
    is_ours = home.startswith("penstock.") and not home.startswith("penstock.settings")
    return is_ours and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind))


def links_in(function: Callable[..., Any]) -> list[str]:
    """The views that a verb returns."""
    returns = inspect.signature(function).return_annotation
    found = dict.fromkeys(classes_in(returns, function.__module__))
    return [f"[`{_name(each)}`]({PAGE}#{_anchor(each)})" for each in found if each in documented()]


def _name(kind: type) -> str:
    """Its name, with its module where another one has the same."""
    same = [each for each in documented() if each.__name__ == kind.__name__]
    return kind.__name__ if len(same) < 2 else f"{kind.__name__} of {_title(kind.__module__)}"


def _anchor(kind: type) -> str:
    return _name(kind).lower().replace(" ", "-").replace(".", "")


def about_class(kind: type) -> str:
    """Its docstring; a dataclass that has none gets its signature, which says nothing new."""
    text = kind.__doc__ or ""
    return "" if text.startswith(f"{kind.__name__}(") else about(kind)


# Fields.


def hints(kind: type) -> Iterator[tuple[str, str, str]]:
    """Name, annotation and module of each field, those of its bases first."""
    found = {}
    for base in reversed(kind.__mro__):
        for name, annotation in inspect.get_annotations(base).items():
            if "ClassVar" not in str(annotation) and not name.startswith("_"):
                found[name] = (name, str(annotation), base.__module__)
    yield from found.values()


def fields_table(kind: type, page: str = "") -> Iterator[str]:
    """A row for each field and for each property; `page` is where the views are, if not here."""
    encoded, defaults = _json_names(kind), _defaults(kind)
    fields = [(name, hint, home, defaults.get(name, "")) for name, hint, home in hints(kind)]
    rows = [(f[0], _type(*f[1:], page), encoded.get(f[0], "")) for f in fields]
    for name, hint in _properties(kind):
        rows.append((name, _type(hint, kind.__module__, "", page), "–" if encoded else ""))
    yield "| field | type | in JSON |\n|---|---|---|" if encoded else "| field | type |\n|---|---|"
    for name, shown, json in rows:
        yield f"| `{name}` | {shown} | {json} |" if encoded else f"| `{name}` | {shown} |"
    yield ""


def _type(annotation: str, home: str, default: str, page: str) -> str:
    text = plain_type(HIDDEN.sub(r"\1", annotation)).removesuffix(UNSET)
    shown = cell(f"`{text}{default}`")
    named = [each for each in classes_in(annotation, home) if each in documented()]
    return f"[{shown}]({page}#{_anchor(named[0])})" if named else shown


def _json_names(kind: type) -> dict[str, str]:
    """The fields that `--json` has under another name, not at all or not always."""
    fields = msgspec.structs.fields(kind) if issubclass(kind, msgspec.Struct) else ()
    other = {f.name: f"`{f.encode_name}`" for f in fields if f.name != f.encode_name}
    hidden = {name: "–" for name, hint, _ in hints(kind) if HIDDEN.match(hint)}
    unset = {f.name: "not always" for f in fields if f.default is msgspec.UNSET}
    return {**other, **hidden, **unset}


def _defaults(kind: type) -> dict[str, str]:
    if issubclass(kind, msgspec.Struct):
        pairs = [(f.name, f.default) for f in msgspec.structs.fields(kind)]
    else:
        pairs = [(f.name, f.default) for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
    absent = (msgspec.NODEFAULT, msgspec.UNSET, dataclasses.MISSING)
    return {name: f" = {value(found)}" for name, found in pairs if found not in absent}


def _properties(kind: type) -> Iterator[tuple[str, str]]:
    for name, found in inspect.getmembers(kind, lambda each: isinstance(each, property)):
        if not name.startswith("_"):
            yield name, str(inspect.signature(found.fget).return_annotation)
