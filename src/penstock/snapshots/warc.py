"""One capture as one WARC 1.1 record in its own gzip member: any web-archive tool can read it."""

from __future__ import annotations

import hashlib
import struct
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus

_END = b"\r\n\r\n"
# How much a stored block of a gzip member holds, and the flag of a member with a comment.
_STORED = 65_535
_HAS_COMMENT = 16
_KEPT_AS = "x-archive-orig-"
# What is unpacked at a time, and how much of a body is held before its hash is known to be right.
_PIECE = 65_536
HELD_UNCHECKED = 33_554_432
MAX_HEAD = 4_194_304
# The body is stored decoded, so headers that describe its coding or length would now be untrue.
_OF_TRANSFER = frozenset({"content-encoding", "transfer-encoding", "content-length"})


class BadRecord(ValueError):
    """The bytes are not a record of ours, or not the one that was expected."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A fetched payload: the body as decoded, header names in lower case."""

    url: str
    status: int
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    fetched_at: float
    # Of its body, where that is known already.
    hash: str = field(default="", repr=False, compare=False)


def content_hash(body: bytes) -> str:
    """The name of a body by its content."""
    return hashlib.sha256(body).hexdigest()


def pack_response(capture: Capture, digest: str, record_id: str) -> bytes:
    block = _http_head(capture)
    head = (
        "WARC/1.1\r\n"
        "WARC-Type: response\r\n"
        f"WARC-Record-ID: <urn:uuid:{record_id}>\r\n"
        f"WARC-Date: {_date(capture.fetched_at)}\r\n"
        f"WARC-Target-URI: {_line(capture.url)}\r\n"
        f"WARC-Payload-Digest: sha256:{digest}\r\n"
        "Content-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(block) + len(capture.body)}\r\n\r\n"
    )
    return _member(_encoded(head), block, capture.body, _END)


def pack_info(software: str, record_id: str, segment: str) -> bytes:
    """The record that opens a segment and says who wrote it."""
    block = f"software: {software}\r\nformat: WARC File Format 1.1\r\n".encode()
    head = (
        "WARC/1.1\r\n"
        "WARC-Type: warcinfo\r\n"
        f"WARC-Record-ID: <urn:uuid:{record_id}>\r\n"
        "WARC-Date: 1970-01-01T00:00:00Z\r\n"
        f"WARC-Filename: {segment}\r\n"
        "Content-Type: application/warc-fields\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return _member(head.encode(), block, _END)


def pack_erased(length: int) -> bytes:
    """A record of exactly this length in place of one that was erased; too short a one is only filled."""
    header = bytes.fromhex("1f8b0800000000000003")
    for size in range(length - len(header) - 8 - 5, 0, -1):
        blocks = -(-size // _STORED)
        spare = length - (len(header) + 8 + 5 * blocks + size)
        if spare == 0 or spare >= 2:
            break
    else:
        return bytes(length)
    # What stored blocks can't fill is a comment in the header of the gzip member.
    if spare:
        header = header[:3] + bytes([_HAS_COMMENT]) + header[4:] + b" " * (spare - 1) + b"\0"
    content = _erased_record(size)
    stored = b"".join(
        struct.pack("<BHH", int(at + _STORED >= size), len(part), len(part) ^ 0xFFFF) + part
        for at in range(0, size, _STORED)
        for part in [content[at : at + _STORED]]
    )
    return header + stored + struct.pack("<II", zlib.crc32(content), size)


def _erased_record(size: int) -> bytes:
    def record(padding: int) -> bytes:
        head = (
            "WARC/1.1\r\n"
            "WARC-Type: metadata\r\n"
            f"WARC-Record-ID: <urn:uuid:{uuid.uuid4()}>\r\n"
            "WARC-Date: 1970-01-01T00:00:00Z\r\n"
            "Content-Type: application/warc-fields\r\n"
            f"Content-Length: {padding:012d}\r\n\r\n"
        )
        return head.encode() + b"erased: yes".ljust(padding)[:padding] + _END

    bare = len(record(0))
    return record(size - bare) if size >= bare else b" " * size


def unpack_response(packed: bytes, digest: str) -> Capture:
    """The capture in these bytes; raises BadRecord unless its body has the expected hash.

    Whoever can write a segment decides what it unpacks to. So a body that is very large is hashed first, in
    pieces, and is held as a whole only if it is the one that was stored.
    """
    head, http, begun, pieces = _heads(_unzipped(packed))
    fields = _fields(head)
    body = _checked(_body(begun, pieces), digest)
    if body is None:
        _, _, begun, pieces = _heads(_unzipped(packed))
        body = b"".join(_body(begun, pieces))
    status, _, lines = http.partition("\r\n")
    try:
        code = int(status.split(" ")[1])
        fetched_at = datetime.fromisoformat(fields["warc-date"]).timestamp()
        url = fields["warc-target-uri"]
    except (IndexError, ValueError, KeyError):
        raise BadRecord("its header is incomplete") from None
    headers = {name.removeprefix(_KEPT_AS): value for name, value in _fields(lines).items()}
    return Capture(url, code, headers, body, fetched_at)


def is_whole(packed: bytes, digest: str) -> bool:
    """Whether a capture in these bytes has a body with this hash; never holds more than a piece of it."""
    found = hashlib.sha256()
    try:
        _, _, begun, pieces = _heads(_unzipped(packed))
        for piece in _body(begun, pieces):
            found.update(piece)
    except BadRecord:
        return False
    return found.hexdigest() == digest


def _member(*parts: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return b"".join([*map(packer.compress, parts), packer.flush()])


def _unzipped(packed: bytes) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(31)
    for at in range(0, len(packed), _PIECE):
        rest = packed[at : at + _PIECE]
        while rest and not unpacker.eof:
            try:
                yield unpacker.decompress(rest, _PIECE)
            except zlib.error:
                raise BadRecord("it is damaged") from None
            rest = unpacker.unconsumed_tail
    if not unpacker.eof or unpacker.unused_data:
        raise BadRecord("it is cut off or not where it should be")


def _heads(pieces: Iterator[bytes]) -> tuple[str, str, bytes, Iterator[bytes]]:
    """The record's head, the HTTP head, the beginning of the body, and the rest of it."""
    begun = b""
    for piece in pieces:
        begun += piece
        head, _, rest = begun.partition(_END)
        http, found, body = rest.partition(_END)
        if found and head.startswith(b"WARC/1.1\r\n"):
            return _text(head), _text(http), body, pieces
        if len(begun) > MAX_HEAD:
            break
    raise BadRecord("it is not a WARC response")


def _body(begun: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The body in pieces, without what ends the record."""
    held = begun
    for piece in pieces:
        if len(held) > len(_END):
            yield held[: -len(_END)]
            held = held[-len(_END) :]
        held += piece
    if not held.endswith(_END):
        raise BadRecord("it is not a WARC response")
    yield held[: -len(_END)]


def _checked(pieces: Iterator[bytes], digest: str) -> bytes | None:
    """The body, if it has this hash; None if it has, and was too large to be held meanwhile."""
    found, size, held = hashlib.sha256(), 0, []
    for piece in pieces:
        found.update(piece)
        size += len(piece)
        held.append(piece)
        if size > HELD_UNCHECKED:
            held.clear()
    if found.hexdigest() != digest:
        raise BadRecord("its content does not match its hash")
    return b"".join(held) if size <= HELD_UNCHECKED else None


def _text(head: bytes) -> str:
    return head.decode("utf-8", "surrogateescape")


def _fields(head: str) -> dict[str, str]:
    pairs = (line.partition(": ") for line in head.split("\r\n") if ": " in line)
    return {name.lower(): value for name, _, value in pairs}


def _http_head(capture: Capture) -> bytes:
    lines = [f"HTTP/1.1 {capture.status} {_phrase(capture.status)}"]
    for name, value in capture.headers.items():
        kept = _KEPT_AS + name if name.lower() in _OF_TRANSFER else name
        lines.append(f"{_line(kept)}: {_line(value)}")
    return _encoded("\r\n".join([*lines, "\r\n"]))


def _phrase(status: int) -> str:
    return _PHRASES.get(status, "Unknown")


_PHRASES = {status.value: status.phrase for status in HTTPStatus}


def _line(text: str) -> str:
    """Text that can't end its line: what comes from outside must not write headers of its own."""
    if text.isprintable():
        return text
    return "".join(" " if letter < " " or letter == "\x7f" else letter for letter in text).strip()


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
