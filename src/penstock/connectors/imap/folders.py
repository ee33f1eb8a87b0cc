"""Folders of a mailbox: their names, which of them are meant, and what is remembered of each."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import translate
from re import compile as compile_pattern
from typing import Any

import msgspec

from penstock.connectors.files.paths import key_of
from penstock.jobs.failures import Permanent

SPECIAL = (
    "\\All",
    "\\Archive",
    "\\Drafts",
    "\\Flagged",
    "\\Junk",
    "\\Sent",
    "\\Trash",
    "\\Important",
)
# Views of messages that are in other folders too.
_VIEWS = frozenset({"\\all", "\\flagged", "\\important"})
_CLOSED = frozenset({"\\noselect", "\\nonexistent"})


class FolderState(msgspec.Struct, frozen=True):
    """By what it is known whether a folder has changed. `modseq` is 0 where the server has none."""

    uidvalidity: int
    uidnext: int
    messages: int
    modseq: int = 0
    # Messages that were not listed: too old, or too large.
    left_out: int = 0


class Folder(msgspec.Struct, frozen=True):
    """A folder as the server has it. `raw` is its name on the wire; levels of `name` are parted by `/`."""

    raw: bytes
    name: str
    flags: frozenset[str]

    @property
    def is_readable(self) -> bool:
        return not self.flags & _CLOSED

    @property
    def is_view(self) -> bool:
        return bool(self.flags & _VIEWS)


def folder_of(flags: Sequence[bytes], delimiter: bytes | None, raw: bytes | str | int) -> Folder:
    """A folder of a LIST response; its name is hostile, and in modified UTF-7."""
    found = raw if isinstance(raw, bytes) else str(raw).encode("utf-8", "surrogateescape")
    name = _decoded(found)
    parting = (delimiter or b"/").decode("latin-1")
    if parting != "/":
        name = name.replace("/", "%2F").replace(parting, "/")
    if name.upper() == "INBOX":
        name = "INBOX"
    return Folder(found, name, frozenset(_lower(flag) for flag in flags))


def wanted_folders(
    folders: Sequence[Folder], include: Sequence[str], exclude: Sequence[str]
) -> list[Folder]:
    """The folders that are meant. A view is, only if it is named by its use or by its whole name."""
    found = [
        folder
        for folder in folders
        if folder.is_readable
        and any(_fits(folder, pattern) for pattern in include)
        and not any(_fits(folder, pattern) for pattern in exclude)
        and not (folder.is_view and not any(_names(folder, each) for each in include))
    ]
    if not found:
        raise Permanent(
            f"no folder is meant by {', '.join(include)}; there are "
            f"{', '.join(repr(folder.name) for folder in folders[:10])}",
            cause="no folder",
        )
    return found


def _fits(folder: Folder, pattern: str) -> bool:
    if pattern.startswith("\\"):
        return pattern.lower() in folder.flags
    if pattern.upper() == "INBOX":
        return folder.name == "INBOX"
    return compile_pattern(translate(pattern)).match(folder.name) is not None


def _names(folder: Folder, pattern: str) -> bool:
    return pattern == folder.name or pattern.lower() in folder.flags


def _lower(flag: Any) -> str:
    return flag.decode("latin-1").lower() if isinstance(flag, bytes) else str(flag).lower()


def _decoded(raw: bytes) -> str:
    """As people read it, if that leads back to the same name; else as it is on the wire."""
    from imapclient.imap_utf7 import decode, encode

    try:
        name: str = decode(raw)
        if encode(name) == raw:
            return name
    except (ValueError, UnicodeError, IndexError):
        pass
    return raw.decode("latin-1")


def address_prefix(source: str, folder: str = "") -> str:
    """What the addresses of a source's messages begin with, or of those in one folder."""
    # One level: what is below a folder's address is in that folder, and not in those below it.
    return (
        f"imap://{source}/{key_of(folder).replace('/', '%2F')}/" if folder else f"imap://{source}/"
    )


def address_of(source: str, folder: str, uidvalidity: int, uid: int) -> str:
    """Padded, so that addresses have the order of UIDs."""
    return f"{address_prefix(source, folder)}{uidvalidity}/{uid:010d}"


def key_of_address(source: str, address: str) -> str:
    head, _, uid = address.removeprefix(address_prefix(source)).rpartition("/")
    return f"{head.replace('%2F', '/')}/{int(uid) if uid.isdecimal() else uid}"


def uid_of(address: str) -> int:
    return int(address.rpartition("/")[2])
