"""The names of a vault, and which file a link leads to.

As Obsidian does: by the name alone, without regard to case; of several, the one below the folder of the note,
else the one with the shortest path. Names that no file has may be aliases.
"""

from __future__ import annotations

import hashlib
import posixpath
import unicodedata
from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.connectors.obsidian.notes import Link


class Resolved(msgspec.Struct, frozen=True, omit_defaults=True):
    """The file that a link leads to."""

    path: str
    by_alias: bool = False
    is_ambiguous: bool = False


class Vault:
    """Every file of a vault by its name, and the aliases of its notes. Holds names, no contents."""

    def __init__(self) -> None:
        self._files: dict[str, str | tuple[str, ...]] = {}
        self._aliases: dict[str, tuple[str, ...]] = {}
        self._sum = 0

    def add(self, path: str) -> None:
        name = folded(path).rpartition("/")[2]
        known = self._files.get(name)
        # One text where there is one file of a name: a vault may have many.
        self._files[name] = path if known is None else (*_paths(known), path)
        self._count(path)

    def add_aliases(self, path: str, aliases: Iterable[str]) -> None:
        for alias in aliases:
            key = folded(alias)
            self._aliases[key] = (*self._aliases.get(key, ()), path)
            self._count(f"{path}\0{alias}")

    def _count(self, text: str) -> None:
        # A sum, because the same names in another order are the same names.
        digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).digest()
        self._sum = (self._sum + int.from_bytes(digest)) % 2**128

    @property
    def digest(self) -> str:
        """Equal while no file and no alias is added or removed."""
        return f"{self._sum:032x}"

    def resolve(self, link: Link, note: str) -> Resolved | None:
        """The file that a link in this note leads to; None if there is none."""
        wanted, folder = folded(link.path), posixpath.dirname(note)
        if not wanted:
            return Resolved(note)
        if wanted.startswith(("./", "../")):
            wanted = "/" + posixpath.normpath(posixpath.join(folded(folder), wanted))
        name = wanted.rpartition("/")[2]
        for ending in ("", ".md"):
            found = [
                path
                for path in _paths(self._files.get(name + ending, ()))
                if _is_meant(folded(path), wanted + ending)
            ]
            if found:
                return Resolved(_nearest(found, folder), is_ambiguous=len(found) > 1)
        aliased = self._aliases.get(wanted, ())
        if aliased:
            return Resolved(_nearest(aliased, folder), True, len(aliased) > 1)
        return None


def folded(text: str) -> str:
    """As names are compared: case and the way in which accents are written make no difference."""
    return unicodedata.normalize("NFC", text).casefold()


def fingerprint(resolved: dict[str, Any]) -> str:
    """Of what the links of a note lead to."""
    if not resolved:
        return "0"
    encoded = msgspec.json.encode(resolved, order="deterministic")
    return hashlib.blake2b(encoded, digest_size=8).hexdigest()


def _paths(known: str | tuple[str, ...]) -> tuple[str, ...]:
    return (known,) if isinstance(known, str) else known


def _is_meant(path: str, wanted: str) -> bool:
    if wanted.startswith("/"):
        return path == wanted[1:]
    return path == wanted or path.endswith(f"/{wanted}")


def _nearest(paths: Iterable[str], folder: str) -> str:
    inside = f"{folder}/" if folder else ""
    return min(paths, key=lambda path: (not path.startswith(inside), len(path), path))
