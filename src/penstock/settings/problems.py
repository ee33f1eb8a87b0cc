"""Everything that is wrong with penstock.yaml, found in one reading.

A reader stops at the first mistake. So the piece that is wrong is taken out and the rest is read again, until
nothing is wrong any more; what is wrong only because a piece is missing now is not told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from penstock.errors import ConfigError
from penstock.settings.document import Entry

T = TypeVar("T")

SHOWN = 20
# More than this in one section, and what is wrong is the whole of it.
MOST = 100
_PLACE = re.compile(r"^(.*?):([0-9]+): ")
Path = tuple[str | int, ...]


class Problems:
    """What is wrong, each thing once."""

    def __init__(self, earlier: Problems | None = None) -> None:
        self._found: dict[str, ConfigError] = dict(earlier._found) if earlier else {}

    def add(self, error: ConfigError) -> None:
        self._found.setdefault(error.message, error)

    def __bool__(self) -> bool:
        return bool(self._found)

    def refuse(self) -> None:
        """Raise what was found: the error itself, or all of them as one."""
        found = sorted(self._found.values(), key=_place)
        if len(found) == 1:
            raise found[0]
        if found:
            lines = [error.message for error in found[:SHOWN]]
            more = len(found) - SHOWN
            lines += [f"and {more} more"] if more > 0 else []
            raised = ConfigError("\n  ".join([f"there are {len(found)} mistakes:", *lines]))
            raised.mistakes = tuple(lines)
            raised.found = tuple(found)
            raise raised

    def read(
        self,
        entry: Entry,
        read: Callable[[Entry], T],
        stand_ins: Mapping[str, str] | None = None,
        without: Sequence[Path] = (),
    ) -> T | None:
        """What the reader makes of the entry; None if something is wrong with it, which is kept then.

        `stand_ins` take the places of keys without which nothing else would be read. `without` are pieces
        that were taken out before: what is wrong only because of that is no mistake, but the answer is None.
        """
        gone = list(without)
        for _ in range(MOST):
            try:
                result = read(entry)
            except ConfigError as error:
                path = _path_of(entry, error.entry)
                is_due_to_gap = without and error.is_of_neighbours
                if path is None or not (is_due_to_gap or _is_consequence(path, error, gone)):
                    self.add(error)
                changed = _repaired(entry, path, stand_ins or {})
                if changed is None or path is None:
                    return None
                entry = changed
                gone.append(path)
            else:
                return None if len(gone) > len(without) else result
        return None


def _place(error: ConfigError) -> tuple[str, int]:
    found = _PLACE.match(error.message)
    return (found[1], int(found[2])) if found else ("", 0)


def _path_of(entry: Entry, wanted: object) -> Path | None:
    if entry is wanted:
        return ()
    inner: list[tuple[str | int, Entry]] = []
    if isinstance(entry.value, dict):
        inner = list(entry.value.items())
    elif isinstance(entry.value, list):
        inner = list(enumerate(entry.value))
    for name, below in inner:
        found = _path_of(below, wanted)
        if found is not None:
            return (name, *found)
    return None


def _is_consequence(path: Path, error: ConfigError, gone: list[Path]) -> bool:
    """Wrong only since something was taken out of it, or from beside it."""
    return any(
        (len(each) > len(path) and each[: len(path)] == path)
        or (error.is_of_neighbours and each and each[:-1] == path[:-1])
        for each in gone
    )


def _repaired(entry: Entry, path: Path | None, stand_ins: Mapping[str, str]) -> Entry | None:
    """The entry without the piece at this path; None if nothing would be left of it."""
    if path is None:
        return None
    if not path:
        return _completed(entry, stand_ins)
    first, rest = path[0], path[1:]
    if isinstance(entry.value, list):
        items = dict(enumerate(entry.value))
        _take_out(items, first, rest, {})
        return replace(entry, value=[items[at] for at in sorted(items)])
    if isinstance(entry.value, dict):
        below = dict(entry.value)
        _take_out(below, first, rest, stand_ins)
        return replace(entry, value=below)
    return None


def _completed(entry: Entry, stand_ins: Mapping[str, str]) -> Entry | None:
    """The entry with what it lacks; None if it lacks nothing, so that all of it is wrong."""
    known = entry.value if isinstance(entry.value, dict) else {}
    missing = {name: text for name, text in stand_ins.items() if name not in known}
    if not missing or (entry.value is not None and not isinstance(entry.value, dict)):
        return None
    added = {name: replace(entry, value=text) for name, text in missing.items()}
    return replace(entry, value={**known, **added})


def _take_out(
    below: dict[Any, Entry], first: Any, rest: Path, stand_ins: Mapping[str, str]
) -> None:
    piece = below.pop(first)
    if not rest:
        if first in stand_ins:
            below[first] = replace(piece, value=stand_ins[first])
    elif (inner := _repaired(piece, rest, {})) is not None:
        below[first] = inner
