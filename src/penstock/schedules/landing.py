"""Landing: which files of a folder have landed: they are new or have changed, and are at rest.

Events are hints. What counts is what a look finds: a stamp for each file, made of its size and its time of
change. A file that is still being written has another stamp at the next look, and is waited for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

WILD = "*?["
# A burst that does not end is not waited for longer than so many times the debounce.
LONGEST_BURST = 10
MOST_AT_ONCE = 10_000


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
    parts = PurePosixPath(text).parts
    first_wild = next((i for i, part in enumerate(parts) if any(c in part for c in WILD)), None)
    cut = len(parts) - 1 if first_wild is None else first_wild
    root, rest = parts[:cut], list(parts[cut:])
    if rest and rest[-1] == "**":
        rest.append("*")
    expression = "".join(_folder(part) for part in rest[:-1]) + _name(rest[-1] if rest else "*")
    depth = None if "**" in rest else len(rest)
    return Pattern(str(PurePosixPath(*root)) if root else ".", re.compile(expression), depth)


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


@dataclass(slots=True)
class _Arrival:
    stamp: str
    since: float


class Landing:
    """What is known of one folder: what has landed before, and what is on its way."""

    def __init__(self, debounce_s: float, landed: Mapping[str, str]) -> None:
        self._debounce_s = debounce_s
        self._landed = dict(landed)
        self._arriving: dict[str, _Arrival] = {}
        self._burst_since = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether something is on its way, so that the next look should be soon."""
        return bool(self._arriving)

    def look(self, found: Mapping[str, str], now: float) -> dict[str, str]:
        """What has landed by now, all of it together, when nothing has moved for as long as the debounce."""
        had_any = bool(self._arriving)
        self._arriving = {path: one for path, one in self._arriving.items() if path in found}
        for path, stamp in found.items():
            known = self._arriving.get(path)
            if self._landed.get(path) == stamp:
                self._arriving.pop(path, None)
            elif known is None or known.stamp != stamp:
                self._arriving[path] = _Arrival(stamp, now)
        if not had_any:
            self._burst_since = now
        at_rest = {
            path: one.stamp
            for path, one in self._arriving.items()
            if now - one.since >= self._debounce_s
        }
        is_long = now - self._burst_since >= LONGEST_BURST * self._debounce_s
        if len(at_rest) < len(self._arriving) and not is_long:
            return {}
        return {path: at_rest[path] for path in sorted(at_rest)[:MOST_AT_ONCE]}

    def gone(self, found: Mapping[str, str]) -> list[str]:
        """What had landed and is no longer there."""
        return [path for path in self._landed if path not in found]

    def forget(self, paths: list[str]) -> None:
        for path in paths:
            self._landed.pop(path, None)

    def has_landed(self, files: Mapping[str, str]) -> None:
        """These are dealt with."""
        self._landed.update(files)
        for path in files:
            self._arriving.pop(path, None)
