"""Patterns of paths as ignore files have them: `*.tmp`, `build/`, `/notes/**`, `!keep.md`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from penstock.errors import ConfigError

LONGEST = 500
# Each may be tried at each place of a name: a pattern of more takes time that grows with its power.
MOST_STARS = 10


class Globs:
    """Patterns, of which the last that fits a path decides."""

    def __init__(self, lines: Iterable[str], base: str = "") -> None:
        self._base = base
        self._rules = [_rule(line) for line in lines]

    def decide(self, path: str, is_folder: bool) -> bool | None:
        """Whether the path is meant; None if no pattern says anything of it."""
        if not path.startswith(self._base):
            return None
        inner = path[len(self._base) :]
        for pattern, is_negated, is_for_folders in reversed(self._rules):
            if (is_folder or not is_for_folders) and pattern.fullmatch(inner):
                return not is_negated
        return None

    def __bool__(self) -> bool:
        return bool(self._rules)


def ignore_rules(text: str, base: str) -> Globs:
    """Those of an ignore file in the folder `base`; lines that are no pattern are left out."""
    found = []
    for line in text.splitlines()[:5_000]:
        bare = line.rstrip()
        if not bare or bare.startswith("#"):
            continue
        try:
            _rule(bare)
        except ConfigError:
            continue
        found.append(bare)
    return Globs(found, base)


@lru_cache(maxsize=4_096)
def _rule(line: str) -> tuple[re.Pattern[str], bool, bool]:
    """The pattern, whether it takes back what others say, and whether it is for folders only."""
    is_negated = line.startswith("!")
    body = line[1:] if is_negated or line.startswith("\\") else line
    is_for_folders = body.endswith("/")
    body = body.rstrip("/")
    if not body or len(body) > LONGEST or body.count("*") > MOST_STARS:
        raise ConfigError(f"{line[:80]!r} is not a pattern of files, such as *.md or drafts/**")
    is_anchored = "/" in body
    parts = body.lstrip("/").split("/")
    if not is_anchored:
        parts = ["**", *parts]
    try:
        return re.compile(_path(parts), re.DOTALL), is_negated, is_for_folders
    except re.error as error:
        raise ConfigError(f"{line[:80]!r} is not a pattern of files: {error.msg}") from None


def _path(parts: list[str]) -> str:
    made = ""
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        if part == "**":
            made += ".+" if is_last else "(?:[^/]+/)*"
        else:
            made += _name(part) + ("" if is_last else "/")
    return made


def _name(part: str) -> str:
    made, at = "", 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "*":
            made += "" if made.endswith("[^/]*") else "[^/]*"
        elif char == "?":
            made += "[^/]"
        elif char == "[" and (end := part.find("]", at + 1)) > 0:
            inner = part[at:end].replace("\\", "\\\\").replace("[", "\\[")
            made += f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]"
            at = end + 1
        else:
            made += re.escape(char)
    return made
