"""Every value of a project's configuration, and where it comes from."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from penstock.settings.address import secrets_in
from penstock.settings.connector import find_connector
from penstock.settings.declaration import Key, Keys, keys_of
from penstock.settings.document import Entry, display_name, join
from penstock.settings.environment import variables_in
from penstock.settings.load import load_settings, overlay_file, read_layers
from penstock.settings.project import ProjectKeys
from penstock.settings.schedule import ScheduleKeys
from penstock.settings.secrets import MASK, SECRET_NAME, redact
from penstock.settings.source import SourceKeys
from penstock.settings.values import Settings

Origin = Literal["file", "overlay", "defaults", "default"]


@dataclass(frozen=True, slots=True)
class Value:
    """A key and its value as the file has it: text with a variable in it is shown as it is written.

    `origin` is the file, its overlay, the `defaults:` of either, or the default of Penstock, which `words`
    may say better than the value.
    """

    key: str
    value: Any
    origin: Origin
    file: str = ""
    line: int = 0
    variables: tuple[str, ...] = ()
    words: str = ""


def values_of(
    path: Path | str, environment: str | None = None, environ: Mapping[str, str] = os.environ
) -> tuple[Settings, list[Value]]:
    """The settings, which must be sound, and all values, those that are not written included."""
    settings = load_settings(path, environment, environ)
    document = read_layers(settings.file, settings.environment)
    walk = _Walk(_overlay_name(settings), secrets_in(settings.store))
    return settings, list(walk.section(ProjectKeys, document, ""))


def literal_secrets(file: Path, environment: str | None) -> list[tuple[str, Entry]]:
    """Keys whose values are secrets that stand in the files themselves, each with where it is written."""
    document = read_layers(file, environment)
    found: list[tuple[str, Entry]] = []
    walk = _Walk("", set(), lambda entry, path: found.append((path, entry)))
    for _ in walk.section(ProjectKeys, document, ""):
        pass
    return found


def _overlay_name(settings: Settings) -> str:
    if settings.environment is None:
        return ""
    return display_name(overlay_file(settings.file, settings.environment))


_SCHEDULE = re.compile(r"(^|\.)schedule(\[\d+\])?$")
_SCHEDULE_NAMES = frozenset(key.name for key in keys_of(ScheduleKeys))


@dataclass(frozen=True, slots=True)
class _Walk:
    overlay: str
    secrets: set[str]
    on_secret: Callable[[Entry, str], None] = lambda entry, path: None

    def section(self, section: type[Keys], entry: Entry | None, path: str) -> Iterator[Value]:
        written = entry.value if entry is not None and isinstance(entry.value, dict) else {}
        keys = keys_of(section)
        if section is SourceKeys and "connector" in written:
            keys = (*keys, *_keys_of_connector(written["connector"]))
        for key in keys:
            if path or key.name != "defaults":  # they stand in the sources already
                yield from self._key(key, written.get(key.name), join(path, key.name))

    def _key(self, key: Key, entry: Entry | None, path: str) -> Iterator[Value]:
        is_written = entry is not None and entry.value is not None
        if key.each is not None and entry is not None and isinstance(entry.value, dict):
            for name, inner in entry.value.items():
                yield from self.section(key.each, inner, join(path, name))
        elif key.section is not None and entry is not None and isinstance(entry.value, list):
            for at, inner in enumerate(entry.value):
                found = self.section(key.section, inner, f"{path}[{at}]")
                yield from (each for each in found if each.origin != "default")
        elif key.section is not None and (_is_mapping(entry) if is_written else key.default):
            yield from self.section(key.section, entry, path)
        elif entry is not None and is_written:
            yield from self._below(entry, path, key.is_secret)
        elif key.each is None and not key.is_required:
            words = (key.default_words or "").replace("`", "")
            yield Value(path, _simple(key.shown(key.default)), "default", words=words)

    def _below(self, entry: Entry, path: str, is_secret: bool) -> Iterator[Value]:
        if isinstance(entry.value, dict) and entry.value:
            for name, inner in entry.value.items():
                hides = is_secret or _sounds_secret(name, path)
                yield from self._below(inner, join(path, name), hides)
        elif isinstance(entry.value, list) and any(map(_is_nested, entry.value)):
            for at, inner in enumerate(entry.value):
                yield from self._below(inner, f"{path}[{at}]", is_secret)
        else:
            yield self._leaf(entry, path, is_secret)

    def _leaf(self, entry: Entry, path: str, is_secret: bool) -> Value:
        variables = tuple(
            dict.fromkeys(name for each in _texts(entry) for name in variables_in(each))
        )
        value = self._masked(entry, is_secret, path)
        origin: Origin = "defaults" if entry.home else "file"
        if entry.file == self.overlay:
            origin = "overlay"
        return Value(path, value, origin, entry.file, entry.line, variables)

    def _masked(self, entry: Entry, is_secret: bool, path: str) -> Any:
        value = entry.value
        if isinstance(value, list):
            return [self._masked(inner, is_secret, path) for inner in value]
        if isinstance(value, str) and variables_in(value):
            return value
        if is_secret and value not in (None, "", {}):
            self.on_secret(entry, path)
            return MASK
        return redact(value, self.secrets) if isinstance(value, str) else value


def _sounds_secret(name: str, path: str) -> bool:
    """Whether a name that people choose says so; those of schedules are ours: `signal`, `session`."""
    is_ours = _SCHEDULE.search(path) is not None and name in _SCHEDULE_NAMES
    return not is_ours and SECRET_NAME.search(name) is not None


def _keys_of_connector(entry: Entry) -> tuple[Key, ...]:
    return keys_of(find_connector(str(entry.value)).Settings) if entry.value else ()


def _is_mapping(entry: Entry | None) -> bool:
    return entry is not None and isinstance(entry.value, dict)


def _is_nested(entry: Entry) -> bool:
    return isinstance(entry.value, (dict, list))


def _texts(entry: Entry) -> list[str]:
    return [each.value for each in entry.below() if isinstance(each.value, str)]


def _simple(value: Any) -> Any:
    """A default as JSON has it; what has a shape of its own is said in words."""
    return value if value is None or isinstance(value, (bool, int, float, str, list)) else None
