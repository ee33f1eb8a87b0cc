"""One mapping of penstock.yaml, and the plain values in it: text, numbers, true and false, words."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from penstock.errors import ConfigError, nearest
from penstock.settings.document import Entry, join

T = TypeVar("T")


class Section:
    """Refuses keys that are not known. A key without a value counts as not written."""

    def __init__(self, entry: Entry, path: str, known: Collection[str]) -> None:
        if entry.value is not None and not isinstance(entry.value, dict):
            raise entry.error(path, f"must be a mapping of keys to values, not {describe(entry)}")
        self.entry = entry
        self.path = path
        self._entries: dict[str, Entry] = entry.value or {}
        for name, inner in self._entries.items():
            if name not in known:
                raise inner.error(join(path, name), f"unknown key, {nearest(name, known)}")

    def get(self, name: str) -> Entry | None:
        entry = self._entries.get(name)
        return None if entry is None or entry.value is None else entry

    def has(self, name: str) -> bool:
        return self.get(name) is not None

    def error(self, name: str, problem: str) -> ConfigError:
        return self._entries.get(name, self.entry).error(join(self.path, name), problem)


def read_text(entry: Entry, path: str) -> str:
    """One line of text that is not empty."""
    text = text_of(entry, path)
    if not text.isprintable():
        raise entry.error(path, "must be one line of printable text")
    return text


def read_flag(entry: Entry, path: str) -> bool:
    value = entry.value
    if entry.is_secret and isinstance(value, str):
        value = {"true": True, "false": False}.get(value.strip().lower())
    if not isinstance(value, bool):
        raise entry.error(path, f"must be true or false, not {describe(entry)}")
    return value


def read_whole(entry: Entry, path: str, low: float, high: float) -> int:
    number = read_number(entry, path, low, high)
    if number != int(number):
        raise entry.error(path, "must be a whole number")
    return int(number)


def read_number(entry: Entry, path: str, low: float, high: float) -> float:
    value = _numeric(entry)
    if value is None:
        raise entry.error(path, f"must be a number, not {describe(entry)}")
    if not low <= value <= high:
        raise entry.error(path, f"must be from {low:g} to {high:g}")
    return value


def read_choice(entry: Entry, path: str, known: Collection[str]) -> str:
    word = read_text(entry, path)
    if word not in known:
        raise entry.error(path, f"must not be {describe(entry)}, {nearest(word, known)}")
    return word


def read_parsed(entry: Entry, path: str, parse: Callable[[str], T], example: str) -> T:
    """What the parser makes of the text; its error is told with the place."""
    if not isinstance(entry.value, str):
        raise entry.error(path, f"must be text such as {example}, not {describe(entry)}")
    return parsed(entry, path, parse, example)


def text_of(entry: Entry, path: str) -> str:
    if not isinstance(entry.value, str):
        tail = "; put it in quotes" if isinstance(entry.value, (bool, int, float)) else ""
        raise entry.error(path, f"must be text, not {describe(entry)}{tail}")
    if not entry.value.strip():
        raise entry.error(path, "must not be empty")
    return entry.value


def parsed(entry: Entry, path: str, parse: Callable[[str], T], example: str) -> T:
    """What the parser makes of an entry's text. What it says of a secret is not told: it may repeat it."""
    text = entry.value if isinstance(entry.value, str) else text_of(entry, path)
    try:
        return parse(text)
    except ConfigError as error:
        if not entry.is_secret:
            raise entry.error(path, error.message) from None
        problem = f"must be text such as {example}, not {describe(entry)}"
        raise entry.error(path, problem) from None


def describe(entry: Entry) -> str:
    """The value in words, for an error; what came from the environment is only said to have."""
    if entry.is_secret:
        return f"what {entry.written!r:.60} stands for"
    match entry.value:
        case None:
            return "nothing"
        case bool(value):
            return "true" if value else "false"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case value:
            return f"{value!r:.60}"


def plain(entry: Entry) -> Any:
    """The value without its places, as JSON would have it."""
    if isinstance(entry.value, dict):
        return {name: plain(inner) for name, inner in entry.value.items()}
    if isinstance(entry.value, list):
        return [plain(inner) for inner in entry.value]
    return entry.value


def _numeric(entry: Entry) -> float | None:
    value = entry.value
    if entry.is_secret and isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None
