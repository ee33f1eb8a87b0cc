"""Git's protocol, version 2: what is sent to a server, and what its answers say. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.jobs.failures import BadData, Permanent

FLUSH, DELIMITER, RESPONSE_END = b"0000", b"0001", b"0002"
LONGEST_LINE = 65_520
_LENGTH = re.compile(rb"[0-9a-fA-F]{4}")
_AGENT = "agent=penstock"
_MARKS = {0: FLUSH, 1: DELIMITER, 2: RESPONSE_END}


def lines_of(body: bytes) -> Iterator[bytes]:
    """The lines of an answer; the marks between them as they are."""
    at = 0
    while at < len(body):
        if not _LENGTH.fullmatch(body, at, at + 4):
            raise _not_git()
        length = int(body[at : at + 4], 16)
        if length in _MARKS:
            yield _MARKS[length]
            at += 4
        elif 4 <= length <= LONGEST_LINE and at + length <= len(body):
            yield body[at + 4 : at + length]
            at += length
        else:
            raise _not_git()


def line(text: str) -> bytes:
    data = f"{text}\n".encode()
    return f"{len(data) + 4:04x}".encode() + data


def command(name: str, arguments: list[str]) -> bytes:
    """A whole request."""
    head = [line(f"command={name}"), line(_AGENT), line("object-format=sha1")]
    return b"".join([*head, DELIMITER, *map(line, arguments), FLUSH])


def capabilities_of(body: bytes) -> dict[str, str]:
    """What a server can do; one that does not speak version 2 is refused."""
    lines = [each.rstrip(b"\n").decode("utf-8", "replace") for each in lines_of(body)]
    if "version 2" not in lines:
        raise Permanent(
            "the server does not speak version 2 of git's protocol (git 2.18 or newer does)",
            cause="an old git server",
        )
    pairs = [each.partition("=") for each in lines[lines.index("version 2") + 1 :]]
    found = {name: value for name, _, value in pairs}
    if found.get("object-format", "sha1") != "sha1":
        raise Permanent("repositories with SHA-256 object names are not read", cause="sha256")
    return found


def refs_of(body: bytes) -> dict[str, str]:
    """The commits of branches by their names; of HEAD, too."""
    found: dict[str, str] = {}
    for each in lines_of(body):
        sha, _, rest = each.rstrip(b"\n").decode("utf-8", "replace").partition(" ")
        if is_sha(sha):
            found[rest.partition(" ")[0]] = sha
    return found


def pack_of(body: bytes) -> bytes:
    """The pack of an answer to `fetch`; what the server says went wrong is raised."""
    pack, is_pack = bytearray(), False
    for each in lines_of(body):
        if each.startswith(b"ERR "):
            raise _said(each[4:])
        if is_pack and each[:1] == b"\x01":
            pack += each[1:]
        elif is_pack and each[:1] == b"\x03":
            raise _said(each[1:])
        elif each.rstrip(b"\n") == b"packfile":
            is_pack = True
    return bytes(pack)


def is_sha(text: str) -> bool:
    return len(text) == 40 and all(letter in "0123456789abcdef" for letter in text)


def _said(words: bytes) -> Permanent:
    shown = " ".join(words[:200].decode("utf-8", "replace").split())
    return Permanent(f"the git server says: {shown}", cause="refused by the git server")


def _not_git() -> BadData:
    return BadData("the answer is not one of a git server", cause="no git server")
