"""A YAML file as entries that remember where they stand.

Plain words are read by YAML 1.2's rules, not 1.1's: `no` is a word and not false, `012` and `1:30`
are not numbers, dates are text. Only tags that are data are accepted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import yaml

from penstock.errors import ConfigError

Scalar = None | bool | int | float | str
Value = Scalar | dict[str, "Entry"] | list["Entry"]

Tell = Callable[[ConfigError], None]

LARGEST_FILE = 10_000_000
MOST_ENTRIES = 300_000
DEEPEST = 50
LONGEST_MESSAGE = 600
LARGEST_INTEGER = 2**63 - 1  # what JSON and SQLite carry from step to step
_TAG = "tag:yaml.org,2002:"
_Fast: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Fast):  # type: ignore[misc]  # chosen at import, so mypy can't see its base
    """The safe loader with the plain words of YAML 1.2's core schema."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


_Loader.add_implicit_resolver(f"{_TAG}null", re.compile(r"^(~|null|Null|NULL|)$"), [*"~nN", ""])
_Loader.add_implicit_resolver(
    f"{_TAG}bool", re.compile(r"^([Tt]rue|[Ff]alse|TRUE|FALSE)$"), [*"tTfF"]
)
_Loader.add_implicit_resolver(
    f"{_TAG}int", re.compile(r"^[-+]?(0|[1-9][0-9]*)$"), [*"-+0123456789"]
)
_Loader.add_implicit_resolver(
    f"{_TAG}float",
    re.compile(r"^[-+]?((0|[1-9][0-9]*)?\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?[eE][-+]?[0-9]+)$"),
    [*"-+.0123456789"],
)
_Loader.add_implicit_resolver(f"{_TAG}merge", re.compile(r"^<<$"), ["<"])


@dataclass(frozen=True, slots=True)
class Entry:
    """A value and where it was written.

    `written` is the text before variables were put into it; empty where there were none. `unset` are those
    of them that the environment does not have. `home` is the path of a default, which many sources share.
    """

    value: Value
    file: str
    line: int
    written: str = field(default="", repr=False)
    unset: tuple[str, ...] = ()
    home: str = ""

    @property
    def is_secret(self) -> bool:
        """Whether it came from the environment."""
        return bool(self.written)

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}: " if self.line else f"{self.file}: "

    def error(self, path: str, problem: str) -> ConfigError:
        """The one line about this entry; what came from the environment stands in it as it was written."""
        path = self.home or path
        text = f"{path}: {problem}" if path else problem
        for each in self.below():
            text = each.as_written(text)
        made = ConfigError(one_line(self.where + text))
        made.entry = self
        made.key = one_line(path)
        return made

    def as_written(self, text: str) -> str:
        """The text with the value of this entry, if it came from the environment, as it was written."""
        if not self.written or not isinstance(self.value, str) or not self.value.strip():
            return text
        # A parser may have lowered its letters or taken off the space around it.
        value = re.escape(self.value.strip())
        return re.sub(value, lambda _: self.written, text, flags=re.IGNORECASE)

    def below(self) -> Iterator[Entry]:
        """This entry, and every one in it."""
        yield self
        inner = [*self.value.values()] if isinstance(self.value, dict) else self.value
        for each in inner if isinstance(inner, list) else ():
            yield from each.below()


def read_document(file: Path, tell: Tell | None = None) -> Entry:
    """The file's one document; anything a person could have got wrong is a ConfigError with its line.

    What does not keep the rest from being read is told, where `tell` is given, and left out.
    """
    name = display_name(file)
    text = _read_text(file, name)
    try:
        _refuse_deep_nesting(text, name)
        node = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise _not_yaml(error, name) from None
    if node is None:
        raise Entry(None, name, 0).error("", "the file is empty")
    return _Reader(name, tell).entry(node, "", 0)


def read_value(text: str, name: str) -> Entry:
    """One value as it could stand in a file; the name stands where the file's would."""
    try:
        _refuse_deep_nesting(text, name)
        node = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise _not_yaml(error, name) from None
    return Entry(None, name, 0) if node is None else _Reader(name).entry(node, "", 0)


def raise_it(error: ConfigError) -> None:
    raise error


def one_line(text: str) -> str:
    """The text without what could break the line or command a terminal; keys come from anywhere."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown if len(shown) <= LONGEST_MESSAGE else f"{shown[:LONGEST_MESSAGE]}…"


def display_name(file: Path) -> str:
    """The path as a person would type it from here."""
    here = Path.cwd()
    return str(file.relative_to(here)) if file.is_relative_to(here) else str(file)


def _read_text(file: Path, name: str) -> str:
    nowhere = Entry(None, name, 0)
    if file.is_dir():
        raise nowhere.error("", "is a directory, not a file")
    try:
        # A pipe would never end, or never begin.
        if file.exists() and not file.is_file():
            raise nowhere.error("", "is not a regular file")
        with file.open("rb") as stream:
            raw = stream.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise nowhere.error("", "there is no such file") from None
    except OSError as error:
        raise nowhere.error("", f"can't be read ({error.strerror})") from None
    if len(raw) > LARGEST_FILE:
        raise nowhere.error("", f"is larger than {LARGEST_FILE // 1_000_000} MB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Entry(None, name, line).error("", "is not UTF-8 text") from None


def _refuse_deep_nesting(text: str, name: str) -> None:
    # Before composing: libyaml's composer recurses in C, where deep nesting is a crash, not an error.
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            line = event.start_mark.line + 1
            raise Entry(None, name, line).error("", f"is nested deeper than {DEEPEST} levels")


def _not_yaml(error: yaml.YAMLError, name: str) -> ConfigError:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        return Entry(None, name, line).error("", f"is not YAML: {error.problem or error.context}")
    return Entry(None, name, 0).error("", f"is not YAML: {str(error).splitlines()[0]}")


class _Reader:
    """Turns composed nodes into entries, counting them: an alias costs what it expands to."""

    def __init__(self, name: str, tell: Tell | None = None) -> None:
        self._name = name
        self._tell = tell or raise_it
        self._count = 0

    def entry(self, node: yaml.Node, path: str, depth: int) -> Entry:
        line = node.start_mark.line + 1
        here = Entry(None, self._name, line)
        self._count += 1
        if self._count > MOST_ENTRIES or depth > DEEPEST:
            raise here.error(path, "expands to too much; use fewer aliases")
        return Entry(self._value(node, path, depth, here), self._name, line)

    def _value(self, node: yaml.Node, path: str, depth: int, here: Entry) -> Value:
        kind = node.tag.removeprefix(_TAG)
        if isinstance(node, yaml.MappingNode) and kind == "map":
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            return [
                self.entry(inner, f"{path}[{index}]", depth + 1)
                for index, inner in enumerate(node.value)
            ]
        if isinstance(node, yaml.ScalarNode):
            return _scalar(kind, node.value, path, here)
        raise here.error(path, f"the tag {node.tag!r} is not allowed")

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Entry]:
        merged: dict[str, Entry] = {}
        own: dict[str, Entry] = {}
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                for source in self._merge_sources(value, path, depth):
                    merged = {**source, **merged}
                continue
            name = self._key(key, path)
            inner = self.entry(value, join(path, name), depth + 1)
            if name in own:
                first = own[name].line
                twice = f"is defined twice (first: line {first})"
                self._tell(self._at(key).error(join(path, name), twice))
                continue
            own[name] = inner
        return {**merged, **own}

    def _merge_sources(self, node: yaml.Node, path: str, depth: int) -> Iterator[dict[str, Entry]]:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for inner in nodes:
            value = self.entry(inner, path, depth + 1).value
            if not isinstance(value, dict):
                raise self._at(inner).error(path, "<< can only merge mappings")
            yield value

    def _key(self, node: yaml.Node, path: str) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._at(node).error(path, "a key must be a word")
        return str(node.value)

    def _at(self, node: yaml.Node) -> Entry:
        return Entry(None, self._name, node.start_mark.line + 1)


def is_text(text: str) -> bool:
    """False for lone surrogates, which no file or database takes."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _scalar(kind: str, text: str, path: str, here: Entry) -> Scalar:
    try:
        match kind:
            case "null":
                return None
            case "bool":
                return {"true": True, "false": False}[text.lower()]
            case "int" if abs(whole := int(text)) <= LARGEST_INTEGER:
                return whole
            case "float" if math.isfinite(number := float(text)):
                return number
            case "str" if is_text(text):
                return text
    except (KeyError, ValueError):
        pass
    raise here.error(
        path, f"{text!r:.40} is not a text, number, true, false or null that can be kept"
    )
