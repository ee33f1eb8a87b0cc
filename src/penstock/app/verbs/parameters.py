"""What a verb is given by a front end: a Struct of its parameters, made from the verb's own signature.

Only those that the table of acts or reads names: a verb may have parameters that no request may set, such as
a file's path. A parameter `wanted` is a filter; its fields stand beside the others.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from penstock.app import views
from penstock.app.paging import LARGEST
from penstock.errors import UsageError, nearest

_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
LARGEST_ID = 2**63 - 1
LONGEST_TEXT = 2_000
MOST_ITEMS = 1_000
# A century: what is longer overflows dates, and nobody means it.
MOST_DAYS = 3_660
LONGEST_S = 100 * 366 * 86_400.0

# The databases can't hold a NUL.
Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT, pattern="^[^\\x00]*$")]
Id = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_ID)]
Size = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=LONGEST_S)]
Moment = Annotated[
    datetime, msgspec.Meta(tz=True, description="a time with its offset: 2026-11-15T08:00:00Z")
]
SIZES = ("limit", "ticks")
AMOUNTS = ("for_s", "window_s", "expires_in_s", "drain_s")
# Shares and limits of a canary, which its verb looks at itself.
SHARES = (
    *("percent", "source_percent", "alpha", "failures", "yields", "rejections", "duplicates"),
    *("quality", "diff"),
)
FILTER = "wanted"
_SIMPLE = {str: Text, int: Id, bool: bool, Any: Any}


def verb_of(name: str) -> Callable[..., Any]:
    """The function behind `runs.retry`, or `status` of the project itself, on its class."""
    from penstock.app.nouns import Nouns

    noun, _, verb = name.rpartition(".")
    if not noun:
        return _plain_function(getattr(Nouns, verb))
    return _plain_function(getattr(noun_class(noun), verb))


def noun_class(noun: str) -> type:
    """The class of a noun: other modules may have classes of the same name."""
    from penstock.app.nouns import Nouns

    module = importlib.import_module(f"penstock.app.{noun}")
    found: type = getattr(module, vars(Nouns)[noun].func.__annotations__["return"])
    return found


def _plain_function(found: Any) -> Callable[..., Any]:
    assert inspect.isfunction(found)  # noqa: S101  the tables name verbs
    return found


@functools.cache
def _noun_classes() -> dict[str, Any]:
    """Every class of nouns and views by its name: signatures name them where only types are checked."""
    import penstock.app as app

    found: dict[str, Any] = {}
    for package in (app, views):
        for module in pkgutil.iter_modules(package.__path__):
            if not module.ispkg:
                made = importlib.import_module(f"{package.__name__}.{module.name}")
                found |= {key: each for key, each in vars(made).items() if inspect.isclass(each)}
    return found


@functools.cache
def hints_of(name: str) -> dict[str, Any]:
    """The types of a verb's parameters and of its answer."""
    verb = verb_of(name)
    # What signatures name for type checkers alone.
    known = {**_noun_classes(), "Moment": float | datetime, "Iterator": Iterator}
    return get_type_hints(verb, localns={**known, **verb.__globals__})


@functools.cache
def parameters_of(name: str, taken: tuple[str, ...]) -> type[msgspec.Struct]:
    """The Struct of these parameters of a verb. What it does not have is an error of the table."""
    hints, signature = hints_of(name), inspect.signature(verb_of(name))
    fields: list[Any] = []
    for each in taken:
        if each in signature.parameters:
            default = signature.parameters[each].default
            fields.append(_field(each, hints[each], default))
        else:
            fields.append(_field(each, *_of_filter(hints[FILTER], each)))
    title = "".join(part.capitalize() for part in name.replace("_", ".").split("."))
    return msgspec.defstruct(
        f"{title}Parameters", fields, frozen=True, kw_only=True, forbid_unknown_fields=True
    )


def _of_filter(kind: type[msgspec.Struct], name: str) -> tuple[Any, Any]:
    """The type and the default of a filter's field."""
    found = {field.name: field for field in msgspec.structs.fields(kind)}[name]
    return found.type, found.default


def _field(name: str, hint: Any, default: Any) -> tuple[Any, ...]:
    if default is inspect.Parameter.empty:
        return (name, web_type(name, hint))
    if default is msgspec.UNSET:
        return (name, Any | msgspec.UnsetType, msgspec.UNSET)
    if default is None:
        return (name, web_type(name, hint) | None, None)
    is_optional = type(None) in _members(hint)
    return (name, web_type(name, hint) | None if is_optional else web_type(name, hint), default)


def web_type(name: str, hint: Any) -> Any:
    """How a parameter of this type is written in a request."""
    if name in SIZES:
        return Size
    if name in AMOUNTS or name in SHARES:
        return Amount
    if name in _SIMPLE_NAMES:
        return _SIMPLE_NAMES[name]
    kinds = [each for each in _members(hint) if each is not type(None)]
    if datetime in kinds or (kinds == [float]):
        return Moment
    if len(kinds) == 1 and get_origin(kinds[0]) in (tuple, list, Sequence, _ABC_SEQUENCE):
        inner = web_type("", get_args(kinds[0])[0])
        return Annotated[list[inner], msgspec.Meta(max_length=MOST_ITEMS)]  # type: ignore[valid-type]
    return _SIMPLE.get(kinds[0], kinds[0]) if len(kinds) == 1 else Text


_ABC_SEQUENCE = get_origin(Sequence[str])
_SIMPLE_NAMES: dict[str, Any] = {
    "days": Annotated[float, msgspec.Meta(gt=0, le=MOST_DAYS)],
    "seed": Annotated[int, msgspec.Meta(ge=0, le=2**31)],
}


def _members(hint: Any) -> Sequence[Any]:
    if get_origin(hint) in (Union, types.UnionType):
        return [inner for each in get_args(hint) for inner in _members(each)]
    return [hint]


def as_arguments(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords that the verb itself is called with."""
    known, hints = inspect.signature(verb_of(name)).parameters, hints_of(name)
    values = {
        key: _plain(value, hints.get(key))
        for key, value in given.items()
        if value is not msgspec.UNSET
    }
    called = {key: value for key, value in values.items() if key in known}
    if FILTER in known:
        rest = {key: value for key, value in values.items() if key not in known}
        called[FILTER] = hints[FILTER](**rest)
    return called


def converted(given: Any, parameters: type[msgspec.Struct], *, strict: bool) -> dict[str, Any]:
    """What was given, held to the Struct; with `strict`, a text is not taken for a number."""
    try:
        found = msgspec.structs.asdict(msgspec.convert(given, parameters, strict=strict))
    except (msgspec.ValidationError, OverflowError) as error:
        if unknown := _UNKNOWN.match(str(error)):
            known = [each.encode_name for each in msgspec.structs.fields(parameters)]
            raise _bad_parameter(
                f"there is no parameter {unknown[1]!r:.100}", nearest(unknown[1], known)
            ) from None
        raise _bad_parameter(str(error) or "A number is too large.") from None
    if any(isinstance(each, float) and not isfinite(each) for each in found.values()):
        raise _bad_parameter("A number must be finite.")
    return found


def _bad_parameter(message: str, hint: str = "") -> UsageError:
    return UsageError(message, hint, code="bad_parameter")


def _plain(value: Any, hint: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).timestamp()
    if isinstance(value, str) and value.isdecimal() and {int, str} <= set(_members(hint)):
        return min(
            int(value[:20]), LARGEST_ID
        )  # the number of a job, where an address may stand too
    return tuple(value) if isinstance(value, list) else value
