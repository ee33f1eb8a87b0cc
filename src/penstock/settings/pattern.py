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
        raise ConfigError(f"{text!r} has '..' after a wildcard: it must come before")
    if rest and rest[-1] == "**":
        rest.append("*")
    depth = None if "**" in rest else len(rest)
    try:
        names = re.compile(_path(rest or ["*"]))
    except re.error as error:
        raise ConfigError(f"{text!r} is not a pattern of files: {error.msg}") from None
    return Pattern(str(PurePosixPath(*root)) if root else ".", names, depth)


# What stands between two wildcards is looked for from the left, and where it was found first it stays
# (`(?>`): others write the names, and to try every place for every wildcard takes a power of the length.
_ANY_FOLDERS = r"(?:(?!\.)[^/]+/)*"


def _path(parts: list[str]) -> str:
    first, *blocks = _split(parts, "**")
    found = "".join(_name(part) + "/" for part in first[:-1])
    if not blocks:
        return found + _name(first[-1])
    found += "".join(_name(part) + "/" for part in first[-1:])
    for block in blocks[:-1]:
        if block:
            folders = "".join(_name(part) + "/" for part in block)
            found += f"(?>{_ANY_FOLDERS}?{folders})"
    *folders_last, name = blocks[-1]
    return found + _ANY_FOLDERS + "".join(_name(part) + "/" for part in folders_last) + _name(name)


def _split(parts: list[str], at: str) -> list[list[str]]:
    blocks: list[list[str]] = [[]]
    for part in parts:
        if part == at:
            blocks.append([])
        else:
            blocks[-1].append(part)
    return blocks


def _name(part: str) -> str:
    found = "" if part.startswith(".") else r"(?!\.)"
    pieces = _pieces(part)
    if len(pieces) == 1:
        return found + pieces[0]
    middle = "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:-1] if piece)
    return f"{found}{pieces[0]}{middle}[^/]*{pieces[-1]}"


def _pieces(part: str) -> list[str]:
    """The expressions for what stands before, between and behind the asterisks."""
    pieces = [""]
    at = 0
    while at < len(part):
        char, at = part[at], at + 1
        end = part.find("]", at + 1) if char == "[" else -1
        if char == "*":
            pieces.append("")
        elif char == "?":
            pieces[-1] += "[^/]"
        elif end > 0:
            inner = part[at:end].replace("\\", "\\\\").replace("[", "\\[")
            pieces[-1] += f"(?!/)[{'^' + inner[1:] if inner.startswith('!') else inner}]"
            at = end + 1
        else:
            pieces[-1] += re.escape(char)
    return pieces
