"""Archives: the tables in a zip or tar file, one after the other. Nothing is ever written to a disk.

Of tar the headers are read here: the library reads what a header asks for, whatever its size.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from penstock.connectors.dump.lines import Readable
from penstock.connectors.dump.streams import BLOCK
from penstock.jobs.failures import BadData

MOST_MEMBERS = 100_000
MOST_HEADER = 1_000_000
_PAX_PATH = re.compile(rb"(?:^|\n)[0-9]{1,10} path=([^\n]{1,4096})\n")
_PAX_SIZE = re.compile(rb"(?:^|\n)[0-9]{1,10} size=([0-9]{1,18})\n")

Member = tuple[str, int, IO[bytes]]


def zip_members(file: Path) -> Iterator[Member]:
    """Name, packed size and unpacked bytes of each member."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise BadData(f"this is no zip file: {str(error)[:200]}", cause="no zip") from None
    with archive:
        members = archive.infolist()
        if len(members) > MOST_MEMBERS:
            raise BadData(
                f"an archive of {len(members):,} files; at most {MOST_MEMBERS:,} are read"
            )
        for member in members:
            if member.is_dir():
                continue
            if member.flag_bits & 1:
                raise BadData(f"{member.filename[:200]} is encrypted", cause="encrypted")
            try:
                opened = archive.open(member)
            except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
                raise BadData(f"{member.filename[:200]}: {error}", cause="no zip") from None
            with opened:
                yield member.filename, member.compress_size, opened


class _Member(io.RawIOBase):
    """So many bytes of a stream."""

    def __init__(self, stream: Readable, size: int) -> None:
        self._stream = stream
        self.left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._stream.read(min(len(buffer), self.left, BLOCK))
        if not found and self.left:
            raise BadData("the archive ends in the middle of a file", cause="damaged archive")
        self.left -= len(found)
        buffer[: len(found)] = found
        return len(found)


def tar_members(
    stream: Readable, on_open_end: Callable[[], None] = lambda: None
) -> Iterator[Member]:
    """Name, size and bytes of each regular file; links, devices and folders are left out.

    `on_open_end` is called if it ends without the empty blocks that end an archive: many lack them.
    """
    name, size = "", -1
    for _ in range(2 * MOST_MEMBERS):
        block = _exactly(stream, 512, may_end=True)
        if not block.strip(b"\0"):
            if not block:
                on_open_end()
            return
        kind, here = block[156:157], _number(block[124:136])
        if kind in (b"L", b"x"):
            extra = _header(stream, here)
            if kind == b"L":
                name = extra.rstrip(b"\0").decode("utf-8", "replace")
            else:
                name = _found(_PAX_PATH, extra).decode("utf-8", "replace") or name
                size = int(_found(_PAX_SIZE, extra) or -1)
            continue
        here = here if size < 0 else size
        if kind in (b"g", b"K"):
            _header(stream, here)
            continue
        member = _Member(stream, here)
        if kind in (b"0", b"\0", b"7"):
            yield name or _name(block), here, io.BufferedReader(member, BLOCK)
        _skip(stream, member.left + -here % 512)
        name, size = "", -1
    raise BadData(f"an archive of more than {MOST_MEMBERS:,} files")


def _name(block: bytes) -> str:
    name = block[:100].rstrip(b"\0").decode("utf-8", "replace")
    prefix = block[345:500].rstrip(b"\0").decode("utf-8", "replace")
    return f"{prefix}/{name}" if block[257:262] == b"ustar" and prefix else name


def _number(field: bytes) -> int:
    if field[0] & 0x80:
        return int.from_bytes(field[1:])
    try:
        return int(field.strip(b" \0") or b"0", 8)
    except ValueError:
        raise BadData("this is no tar file", cause="no tar") from None


def _found(pattern: re.Pattern[bytes], extra: bytes) -> bytes:
    found = pattern.search(extra)
    return found[1] if found else b""


def _header(stream: Readable, size: int) -> bytes:
    if size > MOST_HEADER:
        raise BadData(f"a header of {size:,} bytes in a tar file", cause="no tar")
    extra = _exactly(stream, size)
    _skip(stream, -size % 512)
    return extra


def _exactly(stream: Readable, size: int, *, may_end: bool = False) -> bytes:
    found = b""
    while len(found) < size:
        more = stream.read(size - len(found))
        if not more:
            if not found and may_end:
                return b""
            raise BadData("the archive ends in the middle", cause="damaged archive")
        found += more
    return found


def _skip(stream: Readable, size: int) -> None:
    while size > 0:
        found = stream.read(min(size, BLOCK))
        if not found:
            return
        size -= len(found)
