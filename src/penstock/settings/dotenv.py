"""`.env` beside penstock.yaml: variables for those who do not set them in the environment.

`NAME=value`, one to a line, `export` before it if you like; `#` begins a comment. A value in single quotes
is taken as it is; in double quotes, \\n, \\t, \\", \\$ and \\\\ are escapes. Both may have several lines.
Nothing is substituted in it.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import ConfigError
from penstock.settings.document import display_name

NAME = ".env"
LARGEST_FILE = 1_000_000
_ASSIGNMENT = re.compile(
    r"""[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*"""
    r"""(?:'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|(?P<plain>(?:[^\s'"#][^\n]*?)?))"""
    r"""[ \t]*(?:(?<=[ \t'"=])\#[^\n]*)?(?:\n|\Z)""",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True)
class Dotenv:
    """What the file sets, and what is to be said about it. `repr` shows no value."""

    values: dict[str, str] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()


def read_dotenv(folder: Path) -> Dotenv:
    """The variables of this folder's `.env`; none where there is no such file.

    Refused where somebody else could have written it: its values go wherever penstock.yaml sends them.
    """
    file = folder / NAME
    name = display_name(file)
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Dotenv()
    except OSError as error:
        raise ConfigError(f"{name}: can't be read ({error.strerror})") from None
    with open(descriptor, "rb") as stream:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return Dotenv(warnings=(f"{name}: is not a regular file; left out",))
        _refuse_foreign(found, name)
        raw = stream.read(LARGEST_FILE + 1)
    if len(raw) > LARGEST_FILE:
        raise ConfigError(f"{name}: is larger than {LARGEST_FILE // 1_000_000} MB")
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{name}: is not UTF-8 text") from None
    values, unread = parse_dotenv(text)
    warnings = [f"{name}:{line}: is not NAME=value; left out" for line in unread]
    if found.st_mode & (stat.S_IRGRP | stat.S_IROTH):
        warnings.append(f"{name}: others can read it; run `chmod 600 {name}`")
    return Dotenv(values, tuple(warnings))


def _refuse_foreign(found: os.stat_result, name: str) -> None:
    if found.st_uid not in (os.geteuid(), 0):
        raise ConfigError(f"{name}: belongs to another user", "change its owner, or remove it")
    if found.st_mode & stat.S_IWOTH:
        raise ConfigError(f"{name}: everybody can write it", f"run `chmod 600 {name}`")


def parse_dotenv(text: str) -> tuple[dict[str, str], list[int]]:
    """What is set, a later line before an earlier one, and the numbers of lines that set nothing."""
    values: dict[str, str] = {}
    unread: list[int] = []
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        line = text[at:end].strip()
        found = None if not line or line.startswith("#") else _ASSIGNMENT.match(text, at)
        if found is not None and "\0" not in found[0]:
            values[found["name"]] = _value(found)
            at = found.end()
            continue
        if line and not line.startswith("#"):
            unread.append(text.count("\n", 0, at) + 1)
        at = end
    return values, unread


def _value(found: re.Match[str]) -> str:
    if found["single"] is not None:
        return found["single"]
    if found["double"] is not None:
        return re.sub(r"\\(.)", _unescaped, found["double"], flags=re.DOTALL)
    return found["plain"].strip()


def _unescaped(found: re.Match[str]) -> str:
    # A backslash before anything else is one: Windows paths and patterns have them.
    return _ESCAPES.get(found[1]) or (found[1] if found[1] in '"\\$`' else found[0])
