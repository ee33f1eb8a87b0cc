"""Essentials: of the bytes of an image, what draws it, and how much memory that takes.

Sizes are read here, before any decoder runs. All the rest (comments, profiles, thumbnails, second headers) is
left out: that is where images hide what makes a decoder slow or large.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from struct import unpack_from

MOST_BYTES = 8_000_000
MOST_PARTS = 20_000
MOST_BLOCKS = 100_000
MOST_FILL = 16
# Each scan of a JPEG goes over the whole picture again.
MOST_SCANS = 64
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_PARTS = (b"PLTE", b"tRNS", b"IDAT")
_SOF, _OTHER_SOF, _SOS = (0xC0, 0xC1, 0xC2), (0xC3, *range(0xC5, 0xC8), *range(0xC9, 0xCC)), 0xDA
_JPEG_PARTS = (*_SOF, 0xC4, 0xDB, 0xDD, 0xEE)


@dataclass(frozen=True, slots=True)
class Essentials:
    """An image of a known kind, its size, and what its decoder is given."""

    kind: str
    width: int
    height: int
    body: bytes
    # At most, in bytes.
    memory: int


def essentials_of(body: bytes) -> Essentials | None:
    """None for what is not a whole JPEG, PNG, GIF or WebP."""
    if len(body) > MOST_BYTES:
        return None
    try:
        found = _read(body)
    except (struct.error, IndexError):
        return None
    return found if found is not None and found.width and found.height else None


def _read(body: bytes) -> Essentials | None:
    if body.startswith(_PNG):
        return _png(body)
    if body.startswith(b"\xff\xd8\xff"):
        return _jpeg(body)
    if body.startswith((b"GIF87a", b"GIF89a")):
        return _gif(body)
    return _webp(body) if body.startswith(b"RIFF") and body[8:12] == b"WEBP" else None


def _png(body: bytes) -> Essentials | None:
    width, height = unpack_from(">II", body, 16)
    kept, at = [body[:33]], 33
    for _ in range(MOST_PARTS):
        size, name = unpack_from(">I4s", body, at)
        end = at + 12 + size
        if end > len(body):
            return None
        if name == b"IEND":
            kept.append(body[at:end])
            return Essentials("png", width, height, b"".join(kept), 8 * width * height)
        if name in _PNG_PARTS:
            kept.append(body[at:end])
        at = end
    return None


def _jpeg(body: bytes) -> Essentials | None:
    kept, at, size, is_progressive = [b"\xff\xd8"], 2, (0, 0), False
    for _ in range(MOST_PARTS):
        start = at
        if body[at] != 0xFF:
            return None
        while body[at] == 0xFF and at - start < MOST_FILL:
            at += 1
        marker, length = unpack_from(">BH", body, at)
        if marker == _SOS:
            return _scanned(kept, body[at - 1 :], size, is_progressive)
        if marker in _OTHER_SOF or (marker in _SOF and size != (0, 0)):
            return None
        if marker in _SOF:
            height, width = unpack_from(">HH", body, at + 4)
            size, is_progressive = (width, height), marker == 0xC2
        if marker in _JPEG_PARTS:
            kept.append(body[at - 1 : at + 1 + length])
        at += 1 + length
    return None


def _scanned(
    kept: list[bytes], rest: bytes, size: tuple[int, int], is_progressive: bool
) -> Essentials | None:
    scans = rest.count(b"\xff\xda")
    if scans > MOST_SCANS:
        return None
    pixels = size[0] * size[1]
    # One that comes in several scans is held as coefficients; the others are drawn smaller, row by row.
    memory = 6 * pixels if is_progressive or scans > 1 else pixels
    return Essentials("jpeg", *size, b"".join([*kept, rest]), memory)


def _gif(body: bytes) -> Essentials | None:
    """Its first picture. One that is larger than the screen makes the screen larger."""
    width, height, flags = unpack_from("<HHB", body, 6)
    at = 13 + _colors(flags)
    head, control = body[:at], b""
    for _ in range(MOST_PARTS):
        if body[at] == 0x21:
            end = _after_blocks(body, at + 2)
            control = body[at:end] if body[at + 1] == 0xF9 else control
            at = end
            continue
        if body[at] != 0x2C:
            return None
        left, top, wide, high, flags = unpack_from("<HHHHB", body, at + 1)
        end = _after_blocks(body, at + 11 + _colors(flags))
        width, height = max(width, left + wide), max(height, top + high)
        return Essentials(
            "gif", width, height, head + control + body[at:end] + b";", 8 * width * height
        )
    return None


def _colors(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _after_blocks(body: bytes, at: int) -> int:
    for _ in range(MOST_BLOCKS):
        if not body[at]:
            return at + 1
        at += 1 + body[at]
    raise IndexError


def _webp(body: bytes) -> Essentials | None:
    name = body[12:16]
    if name == b"VP8X":
        width, height = (int.from_bytes(body[at : at + 3], "little") + 1 for at in (24, 27))
    elif name == b"VP8L":
        bits = unpack_from("<I", body, 21)[0]
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif name == b"VP8 ":
        width, height = (each & 0x3FFF for each in unpack_from("<HH", body, 26))
    else:
        return None
    if unpack_from("<I", body, 4)[0] + 8 > len(body):
        return None
    return Essentials("webp", width, height, body, 12 * width * height)
