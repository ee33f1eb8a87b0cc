"""A text table on a server, read by ranges: each part asks for the bytes after the one before it.

Only what neither is packed nor has to be read from its start can be read this way.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING

import msgspec

from penstock.connectors.dump.lines import Lines
from penstock.connectors.dump.parts import MOST_BYTES, MOST_ROWS, FileChanged, Part, Position
from penstock.connectors.dump.records import records_of, sniffed_delimiter
from penstock.connectors.dump.streams import is_utf8, sniffed
from penstock.http.failures import FetchError
from penstock.jobs.failures import BadData, Permanent

if TYPE_CHECKING:
    from penstock.connectors.dump.places import RemotePlace
    from penstock.http.response import Response
    from penstock.pipeline.context import Context

FIRST_BLOCK = MOST_BYTES
LARGEST_BLOCK = 4_000_000
CHANGED = 412
_TOTAL = re.compile(r"bytes \d{1,18}-\d{1,18}/(\d{1,18})")
_MARK = b"\xef\xbb\xbf"


class RemoteFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file on a server in one state: its size, and by what it is recognised."""

    size: int
    etag: str = ""
    last_modified: str = ""

    @property
    def stamp(self) -> str:
        mark = hashlib.blake2b(f"{self.etag} {self.last_modified}".encode(), digest_size=8)
        return f"{self.size}.{mark.hexdigest()}"

    @property
    def is_recognisable(self) -> bool:
        return bool(self.etag or self.last_modified)


async def look_at_file(ctx: Context, place: RemotePlace) -> RemoteFile:
    """What the server says of the file, by its first byte."""
    try:
        response = await place.fetch(ctx, {"Range": "bytes=0-0", "Accept-Encoding": "identity"})
    except FetchError as error:
        if error.status == 416:
            return RemoteFile(0)
        raise
    return file_of(response.headers)


def file_of(headers: Mapping[str, str]) -> RemoteFile:
    found = _TOTAL.fullmatch(headers.get("content-range", "").strip())
    if found is None:
        raise Permanent(
            "the server does not say how long the file is: download it, and name its path",
            cause="no ranges",
        )
    etag = headers.get("etag", "")
    # A weak one says nothing about bytes.
    strong = "" if etag.startswith("W/") else etag
    return RemoteFile(int(found[1]), strong, headers.get("last-modified", ""))


def headers_of(file: RemoteFile, start: int, size: int) -> dict[str, str]:
    """What asks for these bytes of the file in this state, and no other."""
    headers = {
        "Range": f"bytes={start}-{min(start + size, file.size) - 1}",
        "Accept-Encoding": "identity",
    }
    if file.etag:
        headers["If-Match"] = file.etag
    elif file.last_modified:
        headers["If-Unmodified-Since"] = file.last_modified
    return headers


async def block_of(asked: Awaitable[Response], file: RemoteFile) -> bytes:
    """The bytes that were asked for; FileChanged if it is another file by now."""
    try:
        response = await asked
    except FetchError as error:
        if error.status in (CHANGED, 416):
            raise FileChanged from None
        raise
    if file_of(response.headers) != file:
        raise FileChanged
    return response.body


class Block(msgspec.Struct, frozen=True):
    """Bytes that were asked for. `is_last`: the file ends with them."""

    body: bytes
    is_last: bool
    name: str
    kind: str
    delimiter: str = ""
    encoding: str = ""

    def part(self, at: Position, has_header: bool) -> Part | None:
        """The whole records in it; None if there is none. One that may go on beyond it is left out."""
        body, offset = self.body, at.offset
        if offset == 0 and body.startswith(_MARK):
            body, offset = body[len(_MARK) :], len(_MARK)
        delimiter, encoding = self._dialect(body)
        whole = body if self.is_last else body[: body.rfind(b"\n") + 1]
        lines = Lines(io.BytesIO(whole), line=at.line)
        ends = self._ends(lines, delimiter)
        if not ends:
            return Part(b"", self.kind, self.name, dropped=lines.dropped) if self.is_last else None
        end, line = ends[-1]
        dropped = [each for each in lines.dropped if each[0] < line]
        header = int(self.kind == "csv" and at.row == 1 and has_header)
        row = at.row + max(0, len(ends) - header) + len(dropped)
        is_end = self.is_last and end == len(whole)
        return Part(
            _utf8(_kept(whole[:end]), encoding),
            self.kind,
            self.name,
            len(ends),
            line - at.line,
            delimiter,
            encoding,
            dropped,
            None if is_end else Position(at.table, offset + end, line, row),
            is_end and not whole.endswith((b"\n", b"\r")),
        )

    def _dialect(self, body: bytes) -> tuple[str, str]:
        encoding = self.encoding or sniffed(body[:65_536])
        if encoding == "utf-16":
            raise BadData(
                "text in UTF-16 can't be read by ranges: `encoding: utf-16` has it downloaded"
            )
        is_tabbed = self.name.lower().endswith(".tsv")
        return self.delimiter or ("\t" if is_tabbed else sniffed_delimiter(body)), encoding

    def _ends(self, lines: Lines, delimiter: str) -> list[tuple[int, int]]:
        """Offset and line after each record that is whole."""
        ends: list[tuple[int, int]] = []
        for _ in records_of(self.kind, delimiter)(lines):
            ends.append((lines.offset, lines.line))
            if len(ends) > MOST_ROWS:
                break
        # The last one may go on beyond the block: a quote is not closed before it is.
        is_whole = self.is_last and len(ends) <= MOST_ROWS
        return ends if is_whole else ends[:-1]


def _kept(body: bytes) -> bytes:
    """Without lines that are too long, as a part has it."""
    lines, kept = Lines(io.BytesIO(body)), []
    while line := lines.next():
        kept.append(line)
    return b"".join(kept)


def _utf8(body: bytes, encoding: str) -> bytes:
    return body if is_utf8(encoding) else body.decode(encoding, "replace").encode()


def next_size(consumed: int, size: int) -> int:
    """How much to ask for next: about as much as a part took, more if there was no whole record in it."""
    return min(LARGEST_BLOCK, 4 * size) if not consumed else min(FIRST_BLOCK, consumed + 65_536)
