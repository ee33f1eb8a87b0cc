"""Looking at images of strangers: what they show, in bounded memory and time."""

from __future__ import annotations

import random
import resource
import struct
import time
import zlib

import PIL.Image
import pytest

from penstock.agents.gallery.picture import MOST_MEMORY, Picture, alike, look
from tests.agents.pictures import drawing, photo, photo_bytes, saved


def test_the_same_photo_is_recognised_in_another_size_quality_and_format() -> None:
    first = look(photo_bytes("car"))
    others = [
        saved(photo("car").resize((100, 75)), quality=40),
        saved(photo("car").resize((640, 480)), "PNG"),
        saved(photo("car"), "WEBP", quality=50),
        saved(photo("car"), quality=85, progressive=True),
    ]

    assert (first.kind, first.width, first.height, first.is_drawing) == ("jpeg", 200, 150, False)
    assert all(alike(first, look(each)) for each in others)
    assert not any(alike(first, look(photo_bytes(f"other {at}"))) for at in range(40))


def test_drawings_and_plain_surfaces_are_no_photos() -> None:
    assert look(saved(drawing("logo"), "PNG")).is_drawing
    flat = look(saved(PIL.Image.new("RGB", (300, 200), "gray")))
    assert (flat.is_flat, flat.seen, flat.is_drawing) == (True, None, False)
    assert not alike(flat, look(saved(PIL.Image.new("RGB", (300, 200), "white"))))


def _part(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _png(width: int, height: int, *parts: bytes) -> bytes:
    """A PNG of black that says it has this size; its pixels are packed as small as can be."""
    packer = zlib.compressobj(9)
    row = b"\0" * (1 + width * 3)
    packed = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _part(b"IHDR", size)
        + b"".join(parts)
        + _part(b"IDAT", packed)
        + _part(b"IEND", b"")
    )


def _lied(body: bytes, at: int, size: bytes) -> bytes:
    return body[:at] + size + body[at + len(size) :]


def _jpeg_of_many_scans() -> bytes:
    body = saved(photo("scans", 640, 480), progressive=True)
    start = body.rindex(b"\xff\xda")
    return body[:start] + body[start:-2] * (7_900_000 // (len(body) - start)) + b"\xff\xd9"


def _gif(rest: bytes, width: int = 10, height: int = 10) -> bytes:
    return (
        b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff" + rest
    )


_PIXEL = struct.pack("<BHHHHBB", 0x2C, 0, 0, 1, 1, 0, 2) + b"\x02\x4c\x01\x00;"
_GREAT = struct.pack("<BHHHHBB", 0x2C, 65000, 65000, 65000, 65000, 0, 2) + b"\x02\x4c\x01\x00;"
_GREAT_SIZE = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 6, 0, 0, 0)
_TALK = b"!\xfe" + (b"\xff" + b"x" * 255) * 30_000 + b"\0"

HOSTILE = {
    "nothing": b"",
    "a page": b"<!doctype html><title>Not found</title>",
    "noise": random.Random(1).randbytes(50_000),
    "a bomb": _png(5_000, 3_000),
    "a second, larger header": _png(50, 50, _part(b"IHDR", _GREAT_SIZE)),
    "a header that lies": _lied(_png(50, 50), 16, struct.pack(">II", 2_000, 2_000)),
    "packed comments": _png(50, 50, *[_part(b"zTXt", b"k\0\0" + zlib.compress(b"\0" * 900_000, 9))] * 500),
    "many parts": _png(50, 50, *[_part(b"tEXt", b"k\0v")] * 200_000),
    "cut off": photo_bytes("cut")[:2_000],
    "cut in its header": photo_bytes("cut")[:30],
    "many scans": _jpeg_of_many_scans(),
    "fill": b"\xff\xd8" + b"\xff" * 7_000_000,
    "many segments": b"\xff\xd8" + b"\xff\xe1\0\x02" * 1_900_000,
    "a comment that never ends": _gif(_TALK + _PIXEL),
    "a picture beyond the screen": _gif(_GREAT),
    "blocks without an end": _gif(b"!\xfe" + b"\x01x" * 3_000_000),
    "a scalable bomb": b"<svg>" + b"<g>" * 1_000_000,
    "too many bytes": b"\x89PNG\r\n\x1a\n" + b"\0" * 30_000_000,
    "no chunks": b"RIFF" + struct.pack("<I", 4) + b"WEBP",
    "a canvas of its own": b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X\x0a\0\0\0" + b"\xff" * 10,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_no_image_takes_more_than_its_memory_and_a_moment(name: str) -> None:
    look(photo_bytes("before"))
    body = HOSTILE[name]
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()

    found = look(body)

    assert isinstance(found, Picture)
    assert found.seen is None or name in ("a comment that never ends", "packed comments")
    assert time.process_time() - began < 2
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_MEMORY


def test_an_image_beyond_the_bounds_still_has_a_size() -> None:
    found = look(_png(7_000, 900))

    assert (found.width, found.height, found.seen) == (7_000, 900, None)
