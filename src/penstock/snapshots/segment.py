"""What a segment is, wherever it lies: a name of ours, and WARC records one after the other."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.errors import StoreCorrupt
from penstock.snapshots.warc import (
    BadRecord,
    Capture,
    content_hash,
    pack_info,
    pack_response,
    unpack_response,
)
from penstock.version import __version__

SUFFIX = ".warc.gz"
LAST_NUMBER = 999_999
# Upkeep waits an hour, by its own clock, before it takes a segment that has not grown for abandoned.
IDLE_S = 1800.0
_NAME = re.compile(r"[0-9a-f]{16}-[0-9]{6}")


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """Where a capture lies, and the hash its body must have."""

    hash: str
    segment: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Packed:
    """A record that can go into any segment, and the hash of the body in it."""

    hash: str
    record: bytes


def name_of(mark: str, number: int) -> str:
    """The name of a writer's n-th segment; the mark is 16 hexadecimal digits of its own."""
    return f"{mark}-{number:06d}"


def is_segment(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def segment_in(file_name: str) -> str | None:
    """The segment that a file or an object of this name holds, if any."""
    name = file_name.removesuffix(SUFFIX)
    return name if name != file_name and is_segment(name) else None


def opening(segment: str) -> bytes:
    """The record that a segment begins with."""
    return pack_info(f"penstock/{__version__}", _record_id(segment, 0), segment)


def packed_ahead(capture: Capture, name: str) -> Packed:
    """A capture as a record, before its place is known; no other one has this name."""
    digest = content_hash(capture.body)
    return Packed(digest, pack_response(capture, digest, _record_id(name, 0)))


def packed(
    captures: Sequence[Capture | Packed], segment: str, at: int
) -> Iterator[tuple[SegmentPlace, bytes]]:
    """Each capture as a record of this segment, from this offset on."""
    for capture in captures:
        if isinstance(capture, Packed):
            digest, record = capture.hash, capture.record
        else:
            digest = capture.hash or content_hash(capture.body)
            record = pack_response(capture, digest, _record_id(segment, at))
        yield SegmentPlace(digest, segment, at, len(record)), record
        at += len(record)


def unpacked(place: SegmentPlace, record: bytes) -> Capture:
    """The capture, if these are the bytes that belong to this place."""
    try:
        if len(record) != place.length:
            raise BadRecord("it is cut off")
        return unpack_response(record, place.hash)
    except BadRecord as error:
        where = f"{place.segment}{SUFFIX} at {place.offset}"
        raise StoreCorrupt(f"the snapshot in {where} can't be read: {error}") from None


def refuse_bad_place(place: SegmentPlace) -> None:
    """Places come from the database; only a name of ours may become a path."""
    if not is_segment(place.segment) or place.offset < 0 or place.length <= 0:
        raise StoreCorrupt(f"{place.segment[:40]!r} is not a snapshot segment")


def _record_id(segment: str, offset: int) -> str:
    """Unique because a segment is written once, and the same whenever it is written again."""
    name = f"{segment}/{offset}".encode()
    return str(uuid.UUID(bytes=hashlib.blake2s(name, digest_size=16).digest(), version=4))
