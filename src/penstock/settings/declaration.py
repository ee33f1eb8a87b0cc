"""Keys of penstock.yaml, declared once.

A section is a Struct. Its fields are the keys: the name in the file (`msgspec.field(name=…)` where Python's
has a unit), the type with its bounds, the default and the description. Reading, refusing unknown keys, the
JSON Schema and the tables in docs/configuration.md are made from the same declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from inspect import get_annotations
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from penstock.errors import ConfigError
from penstock.settings.document import Entry, join
from penstock.settings.section import (
    Section,
    read_choice,
    read_flag,
    read_number,
    read_parsed,
    read_text,
    read_whole,
)

Schema = dict[str, Any]
Read = Callable[[Entry, str], Any]


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A section, as it is written."""

    @classmethod
    def refuse(cls, at: Section) -> None:
        """Refuse keys that must not stand together, before any of them is read."""

    def made(self, at: Section) -> Any:
        """What the section comes to: itself, unless the program uses it in another shape.

        Refuses values that do not go together.
        """
        return self


K = TypeVar("K", bound=Keys)


@dataclass(frozen=True, slots=True)
class TextForm:
    """A type that is written as text: a duration, a rate, a size. `shown` writes a value as a file would."""

    parse: Callable[[str], Any]
    example: str
    pattern: str = ""
    shown: Callable[[Any], str] = str


@dataclass(frozen=True, slots=True)
class Reads:
    """A type with a shape of its own. `schema` is given what turns a section into a reference to it.

    `each` is the section of everything that stands below it under a name of its own; `below` is the one that
    may stand in its place, once or in a list.
    """

    read: Read
    schema: Callable[[Callable[[type[Keys]], Schema]], Schema]
    shown: Callable[[Any], Any] = lambda value: value
    each: type[Keys] | None = None
    below: type[Keys] | None = None


@dataclass(frozen=True, slots=True)
class MadeOf:
    """The type is what this section's `made` answers with."""

    keys: type[Keys]


@dataclass(frozen=True, slots=True)
class MissingKey:
    """What is said where a key is not written that has no default.

    It may be elsewhere: in `defaults:`, or in the file under an overlay.
    """

    problem: str
    may_be_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Usual:
    """The default in words, where the value alone would not say it."""

    words: str


@dataclass(frozen=True, slots=True)
class For:
    """Which of the other keys it belongs to, in words."""

    words: str


class Secret:
    """The value is never shown, also where it is written in the file itself."""


SECRET = Secret()


def about(description: str) -> msgspec.Meta:
    """What a key means, in the Markdown of the docs."""
    return msgspec.Meta(description=description)


def between(low: float, high: float) -> msgspec.Meta:
    return msgspec.Meta(ge=low, le=high)


def no_less(low: float) -> msgspec.Meta:
    return msgspec.Meta(ge=low)


def no_more(high: float) -> msgspec.Meta:
    return msgspec.Meta(le=high)


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a section."""

    name: str
    attribute: str
    type: Any
    notes: tuple[Any, ...]
    default: Any
    read: Read

    @property
    def is_required(self) -> bool:
        return self.default is msgspec.NODEFAULT

    @property
    def description(self) -> str:
        return next((m.description for m in self._metas() if m.description), "")

    @property
    def low(self) -> float | None:
        return next((m.ge for m in self._metas() if m.ge is not None), None)

    @property
    def high(self) -> float | None:
        return next((m.le for m in self._metas() if m.le is not None), None)

    @property
    def section(self) -> type[Keys] | None:
        """The Struct of what is below this key."""
        reads, made_of = note(self.notes, Reads), note(self.notes, MadeOf)
        if reads is not None:
            return reads.below
        if made_of is not None:
            return made_of.keys
        return self.type if is_section(self.type) else None

    @property
    def each(self) -> type[Keys] | None:
        """The Struct of each of those that are below this key by their names."""
        reads = note(self.notes, Reads)
        return None if reads is None else reads.each

    @property
    def is_secret(self) -> bool:
        return note(self.notes, Secret) is not None

    def shown(self, value: Any) -> Any:
        """A value of this key, as the file would have it."""
        for each in self.notes:
            if isinstance(each, (TextForm, Reads)) and value is not None:
                value = each.shown(value)
        return list(value) if isinstance(value, tuple) else value

    @property
    def default_words(self) -> str | None:
        """What is said of the default, where the value alone would not say it."""
        usual = note(self.notes, Usual)
        return None if usual is None else usual.words

    def _metas(self) -> list[msgspec.Meta]:
        return [each for each in self.notes if isinstance(each, msgspec.Meta)]


N = TypeVar("N")


def note(notes: tuple[Any, ...], kind: type[N]) -> N | None:
    """The first of the notes that is of this kind."""
    return next((each for each in notes if isinstance(each, kind)), None)


def is_section(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, Keys)


@cache
def keys_of(section: type[Keys]) -> tuple[Key, ...]:
    """The keys of a section, in the order of their declaration."""
    hints = _hints(section)
    return tuple(_key(field, hints[field.name]) for field in msgspec.structs.fields(section))


@cache
def names_of(section: type[Keys]) -> tuple[str, ...]:
    return tuple(key.name for key in keys_of(section))


def decode(section: type[Keys], entry: Entry, path: str) -> Any:
    """What the section's Struct makes of the entry; the first mistake in it is raised with its place."""
    at = Section(entry, path, names_of(section))
    with _of_neighbours():
        section.refuse(at)
    given = {}
    for key in keys_of(section):
        inner = at.get(key.name)
        if inner is not None:
            given[key.attribute] = key.read(inner, join(path, key.name))
        elif key.is_required:
            missing = note(key.notes, MissingKey)
            with _of_neighbours():
                raise at.error(key.name, missing.problem if missing else "is missing")
    with _of_neighbours():
        return section(**given).made(at)


@contextmanager
def _of_neighbours() -> Iterator[None]:
    """What is refused in here is wrong beside other keys, or without them: not by itself."""
    try:
        yield
    except ConfigError as error:
        error.is_of_neighbours = True
        raise


def _hints(section: type[Keys]) -> dict[str, Any]:
    # Sections here are declared with types, not with their text: reading that takes every command 10 ms.
    own = get_annotations(section)
    if own.keys() >= set(section.__struct_fields__) and not any(
        isinstance(each, str) for each in own.values()
    ):
        return own
    return get_type_hints(section, include_extras=True)


def _key(field: msgspec.structs.FieldInfo, hint: Any) -> Key:
    found, notes = _peeled(hint)
    default = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    bare = Key(field.encode_name, field.name, found, notes, default, _unread)
    return Key(bare.name, bare.attribute, found, notes, default, _reader(bare))


def _unread(entry: Entry, path: str) -> Any:
    raise AssertionError(f"nothing reads {path}")


def _peeled(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """The type without `| None` and without its notes, and these."""
    notes: tuple[Any, ...] = ()
    while True:
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            notes = (*more, *notes)
        elif get_origin(hint) in (Union, UnionType):
            kinds = [each for each in get_args(hint) if each is not NoneType]
            if len(kinds) != 1:
                return hint, notes
            [hint] = kinds
        else:
            return hint, notes


def _reader(key: Key) -> Read:
    for each in key.notes:
        if isinstance(each, Reads):
            return each.read
        if isinstance(each, TextForm):
            return partial(_read_unit, each, key.low, key.high)
    if key.section is not None:
        return partial(decode, key.section)
    return _plain_reader(key)


def _plain_reader(key: Key) -> Read:
    low, high = key.low, key.high
    if key.type is bool:
        return read_flag
    if key.type is str:
        return read_text
    if get_origin(key.type) is Literal:
        return partial(read_choice, known=get_args(key.type))
    if key.type in (int, float) and low is not None and high is not None:
        return partial(read_whole if key.type is int else read_number, low=low, high=high)
    raise TypeError(f"{key.name}: {key.type} can't be read: it needs a Unit, Reads or bounds")


def _read_unit(
    unit: TextForm, low: float | None, high: float | None, entry: Entry, path: str
) -> Any:
    value = read_parsed(entry, path, unit.parse, unit.example)
    if low is not None and value < low:
        raise entry.error(path, f"must be at least {low:g}s")
    if high is not None and value > high:
        raise entry.error(path, f"must be at most {unit.shown(high)}")
    return value
