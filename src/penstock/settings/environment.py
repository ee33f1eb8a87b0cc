"""What the environment adds: an overlay file laid over the project's, and ${NAME} in strings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.errors import nearest
from penstock.settings.document import Entry, is_text, join
from penstock.settings.secret_sources import NoSecret, is_source, secret_of
from penstock.settings.unset import Unset

_VARIABLE = re.compile(r"\$(?P<escape>\$)?\{(?P<name>[^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Images of Docker have it so: PASSWORD_FILE=/run/secrets/password instead of PASSWORD.
IN_FILE = "_FILE"
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


def file_of(name: str, environ: Mapping[str, str]) -> str:
    """Where the secret is, if the variable is not set and another one names a file: `NAME_FILE`."""
    file = environ.get(f"{name}{IN_FILE}", "") if name not in environ else ""
    return f"file:{file}" if file else ""


def variables_in(text: str) -> tuple[str, ...]:
    """The names that stand in it as ${NAME}."""
    return tuple(match["name"] for match in _VARIABLE.finditer(text) if not match["escape"])


class Substitution:
    """Replaces ${NAME} in every string by the variable's value and remembers it as a secret.

    `$${NAME}` stays as the text `${NAME}`. Keys are never substituted. Text with a variable that is not set
    stays as it is written: only what needs it can't be used.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.secrets: set[str] = set()
        self.unset: list[Unset] = []
        # Why secrets could not be had that are not in the environment.
        self._problems: dict[str, str] = {}

    def apply(self, entry: Entry, path: str = "", keys: tuple[str, ...] = ()) -> Entry:
        value = entry.value
        if isinstance(value, dict):
            inner = {
                name: self.apply(below, join(path, name), (*keys, name)[:2])
                for name, below in value.items()
            }
            return replace(entry, value=inner)
        if isinstance(value, list):
            items = [self.apply(below, f"{path}[{n}]", keys) for n, below in enumerate(value)]
            return replace(entry, value=items)
        if isinstance(value, str) and "${" in value:
            return self._text(entry, value, path, keys)
        return entry

    def _text(self, entry: Entry, text: str, path: str, keys: tuple[str, ...]) -> Entry:
        def lookup(match: re.Match[str]) -> str:
            if match["escape"]:
                return match[0][1:]
            return self._variable(match["name"], entry, path)

        names = variables_in(text)
        substituted = _VARIABLE.sub(lookup, text)
        missing = tuple(name for name in names if not self._is_there(name))
        if missing:
            section, source = (*keys, "", "")[:2]
            owner = source if section == "sources" else ""
            self.unset += [
                Unset(name, path, entry.where, section, owner, self._why(name)) for name in missing
            ]
            return replace(entry, unset=missing)
        return replace(entry, value=substituted, written=text if names else "")

    def _is_there(self, name: str) -> bool:
        is_known = is_source(name) or name in self._environ or file_of(name, self._environ)
        return bool(is_known) and name not in self._problems

    def _why(self, name: str) -> str:
        return self._problems[name] if name in self._problems else self._near(name)

    def _of_source(self, name: str) -> str:
        return self._secret(name, name)

    def _secret(self, name: str, source: str) -> str:
        try:
            found = secret_of(source)
        except NoSecret as problem:
            said = (
                ""
                if name == source
                else f"{name}{IN_FILE} names {source.removeprefix('file:')!r:.200}: "
            )
            self._problems[name] = f"{said}{problem}"
            return ""
        self.secrets.add(found)
        return found

    def _variable(self, name: str, entry: Entry, path: str) -> str:
        if is_source(name):
            return self._of_source(name)
        if not _NAME.fullmatch(name):
            raise entry.error(path, f"${{{name}}} does not name an environment variable")
        if source := file_of(name, self._environ):
            return self._secret(name, source)
        value = self._environ.get(name, "")
        if not is_text(value):
            raise entry.error(path, f"the environment variable {name} is not UTF-8 text")
        if value:
            self.secrets.add(value)
        return value

    def _near(self, name: str) -> str:
        near = nearest(name, (known for known in self._environ if _NAME.fullmatch(known)))
        return near if near.startswith("did") else ""


def unset_paths(entry: Entry, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where in the entry a variable is needed that is not set."""
    if entry.unset:
        return [path]
    inner: Iterable[tuple[str | int, Entry]] = ()
    if isinstance(entry.value, dict):
        inner = entry.value.items()
    elif isinstance(entry.value, list):
        inner = enumerate(entry.value)
    return [found for name, below in inner for found in unset_paths(below, (*path, name))]


def without_unset(entry: Entry) -> Entry:
    """The entry without what needs a variable that is not set, as if it had not been written."""
    value = entry.value
    if isinstance(value, dict):
        kept = {name: below for name, below in value.items() if not below.unset}
        return replace(entry, value={name: without_unset(below) for name, below in kept.items()})
    if isinstance(value, list):
        return replace(entry, value=[without_unset(below) for below in value if not below.unset])
    return entry
