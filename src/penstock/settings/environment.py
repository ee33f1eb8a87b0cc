"""What the environment adds: an overlay file laid over the project's, and ${NAME} in strings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from penstock.errors import nearest
from penstock.settings.document import Entry, is_text, join

_VARIABLE = re.compile(r"\$(?P<escape>\$)?\{(?P<name>[^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A schedule is one choice, so an overlay's `every` must not end up beside the file's `cron`.
_REPLACED_WHOLE = frozenset({"schedule"})


def overlay(base: Entry, top: Entry) -> Entry:
    """The overlay wins: mappings are laid over each other key by key, everything else is replaced.

    A key without a value takes the file's away, and its default is back.
    """
    if not isinstance(base.value, dict) or not isinstance(top.value, dict):
        return top
    merged = dict(base.value)
    for name, entry in top.value.items():
        below = merged.get(name)
        merged[name] = entry if below is None or name in _REPLACED_WHOLE else overlay(below, entry)
    return replace(base, value=merged)


def variables_in(text: str) -> tuple[str, ...]:
    """The names that stand in it as ${NAME}."""
    return tuple(match["name"] for match in _VARIABLE.finditer(text) if not match["escape"])


class Substitution:
    """Replaces ${NAME} in every string by the variable's value and remembers it as a secret.

    `$${NAME}` stays as the text `${NAME}`. Keys are never substituted. A missing variable is an
    error that names the variable and the key; its neighbours' values are never shown.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.secrets: set[str] = set()

    def apply(self, entry: Entry, path: str = "") -> Entry:
        value = entry.value
        if isinstance(value, dict):
            inner = {name: self.apply(below, join(path, name)) for name, below in value.items()}
            return replace(entry, value=inner)
        if isinstance(value, list):
            items = [self.apply(below, f"{path}[{index}]") for index, below in enumerate(value)]
            return replace(entry, value=items)
        if isinstance(value, str) and "${" in value:
            return self._text(entry, value, path)
        return entry

    def _text(self, entry: Entry, text: str, path: str) -> Entry:
        def lookup(match: re.Match[str]) -> str:
            if match["escape"]:
                return match[0][1:]
            return self._variable(match["name"], entry, path)

        has_variable = any(not match["escape"] for match in _VARIABLE.finditer(text))
        substituted = _VARIABLE.sub(lookup, text)
        return replace(entry, value=substituted, is_secret=has_variable)

    def _variable(self, name: str, entry: Entry, path: str) -> str:
        if not _NAME.fullmatch(name):
            raise entry.error(path, f"${{{name}}} does not name an environment variable")
        value = self._environ.get(name)
        if value is None:
            near = nearest(name, (known for known in self._environ if _NAME.fullmatch(known)))
            tail = f"; {near}" if near.startswith("did") else ""
            raise entry.error(path, f"the environment variable {name} is not set{tail}")
        if not is_text(value):
            raise entry.error(path, f"the environment variable {name} is not UTF-8 text")
        if value:
            self.secrets.add(value)
        return value
