"""What is different between two versions of a record, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

# Deeper than this, two values are compared as wholes.
DEEPEST = 40


class _Nothing:
    """Stands for a field that is not there; null is something."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING: Final = _Nothing()
Path = tuple[str | int, ...]


class FieldChange(msgspec.Struct, frozen=True):
    """One place that differs: what was there, and what is there now; NOTHING where it was not or is not."""

    path: Path
    before: Any
    after: Any


def field_changes(before: Any, after: Any) -> list[FieldChange]:
    """Every place where two JSON values differ, in order; none if, and only if, they are the same.

    Objects are compared name by name. So are lists of one length, item by item; lists of different
    lengths are one change, because nobody can say which of their items is new.
    """
    return list(_changes((), before, after))


def applied(before: Any, changes: Sequence[FieldChange]) -> Any:
    """The value that these changes make of this one."""
    for change in changes:
        before = _with(before, change.path, change.after)
    return before


def shown_path(path: Path) -> str:
    """`images[2].url`, as people write it; a name that would be read otherwise stands in quotes."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier() or part.replace("-", "_").isidentifier():
            text += f".{part}" if text else part
        else:
            text += f"[{msgspec.json.encode(part).decode()}]"
    return text or "(all)"


def _changes(path: Path, before: Any, after: Any) -> Iterator[FieldChange]:
    if len(path) < DEEPEST and isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            inner = (*path, name)
            yield from _changes(inner, before.get(name, NOTHING), after.get(name, NOTHING))
    elif len(path) < DEEPEST and _are_lists_of_one_length(before, after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _changes((*path, index), old, new)
    elif not _is_same(before, after):
        yield FieldChange(path, before, after)


def _are_lists_of_one_length(before: Any, after: Any) -> bool:
    return isinstance(before, list) and isinstance(after, list) and len(before) == len(after)


def _is_same(before: Any, after: Any) -> bool:
    """As JSON says it: 1, 1.0 and true are three different things, and so are 0.0 and -0.0."""
    if type(before) is not type(after):
        return False
    if isinstance(before, (dict, list)):
        encode = msgspec.json.encode
        return encode(before, order="deterministic") == encode(after, order="deterministic")
    return before == after and (not isinstance(before, float) or repr(before) == repr(after))


def _with(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    here, rest = path[0], path[1:]
    if isinstance(value, list):
        return [_with(each, rest, new) if n == here else each for n, each in enumerate(value)]
    changed = {**value, here: _with(value.get(here), rest, new)}
    return {name: each for name, each in changed.items() if each is not NOTHING}
