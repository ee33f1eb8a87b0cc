"""Patterns of files: `./inbox/**/*.json`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from penstock.errors import ConfigError

WILD = "*?["


@dataclass(frozen=True, slots=True)
class Pattern:
    """The folder that is looked through, how deep, and what the paths in it must look like."""

    root: str
    names: re.Pattern[str]
    depth: int | None

    def holds(self, path: str) -> bool:
        """Whether a path, relative to the root, is meant."""
        return self.names.fullmatch(path) is not None


def pattern_of(text: str) -> Pattern:
    """`inbox/**/*.json`: `**` is any number of folders; names that begin with a dot must be asked for."""
    if text.endswith("/"):
        raise ConfigError(f"{text!r} is a folder: write {text + '*'!r} for what is in it")
    parts = PurePosixPath(text).parts
    first_wild = next((i for i, part in enumerate(parts) if any(c in part for c in WILD)), None)
    cut = len(parts) - 1 if first_wild is None else first_wild
    root, rest = parts[:cut], list(parts[cut:])
    if ".." in rest:
        raise ConfigError(f"{text!r} goes up again behind a wildcard: '..' must come before it")
    if rest and rest[-1] == "**":
        rest.append("*")
    expression = "".join(_folder(part) for part in rest[:-1]) + _name(rest[-1] if rest else "*")
    depth = None if "**" in rest else len(rest)
    try:
        names = re.compile(expression)
    except re.error as error:
        raise ConfigError(f"{text!r} is not a pattern of files: {error.msg}") from None
    return Pattern(str(PurePosixPath(*root)) if root else ".", names, depth)


def _folder(part: str) -> str:
    return r"(?:(?!\.)[^/]+/)*" if part == "**" else _name(part) + "/"


def _name(part: str) -> str:
    found = "" if part.startswith(".") else r"(?!\.)"
    at = 0
    while at < len(part):
        char, at = part[at], at + 1
        end = part.find("]", at + 1) if char == "[" else -1
        if char == "*":
            found += "[^/]*"
        elif char == "?":
            found += "[^/]"
        elif end > 0:
            inner = part[at:end].replace("\\", "\\\\").replace("[", "\\[")
            found += f"(?!/)[{'^' + inner[1:] if inner.startswith('!') else inner}]"
            at = end + 1
        else:
            found += re.escape(char)
    return found
