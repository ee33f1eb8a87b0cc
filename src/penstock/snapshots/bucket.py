"""Snapshots in a bucket of an object store: S3 and what speaks like it, Google's, Azure's.

An object can't be appended to, so what is appended between two syncs becomes one: a whole WARC file,
put in one request where nothing was before, and never touched again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from obstore.exceptions import AlreadyExistsError

from penstock.errors import StoreCorrupt, StoreError
from penstock.http import buckets
from penstock.http.buckets import ERRORS, REQUEST_S, RETRY_S, Bucket
from penstock.snapshots.refusals import is_beyond_end, is_without_bucket, refusal
from penstock.snapshots.segment import (
    LAST_NUMBER,
    SUFFIX,
    Packed,
    SegmentPlace,
    is_segment,
    name_of,
    opening,
    packed,
    refuse_bad_place,
    segment_in,
    unpacked,
)
from penstock.snapshots.store import SnapshotsAway, SnapshotsRefused
from penstock.snapshots.warc import Capture, pack_erased

__all__ = ["REQUEST_S", "RETRY_S", "Bucket", "BucketSnapshots", "connect"]

# An object is closed at this size: small enough to be sent within REQUEST_S over a slow line.
MAX_OBJECT_BYTES = 16 * 1024 * 1024
REMOVED_AT_ONCE = 1000


@dataclass(slots=True)
class _Object:
    """The object that is being filled."""

    name: str
    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, record: bytes) -> None:
        self.parts.append(record)
        self.size += len(record)


class BucketSnapshots:
    """The snapshots under one prefix of a bucket. The writer's mark is random at every start."""

    def __init__(self, url: str, max_object_bytes: int = MAX_OBJECT_BYTES) -> None:
        self._url = url
        self._max_object_bytes = max_object_bytes
        self._mark, self._number = secrets.token_hex(8), 0
        self._filling: _Object | None = None
        # An object is never written again.
        self._sizes: dict[str, int] = {}
        try:
            self._bucket = connect(url)
        except ERRORS as error:
            raise refusal(f"can't use the snapshots at {url}", error) from None

    def append(self, captures: Sequence[Capture | Packed]) -> list[SegmentPlace]:
        places = []
        for capture in captures:
            filling = self._open_object_if_needed()
            [(place, record)] = packed([capture], filling.name, filling.size)
            filling.add(record)
            places.append(place)
        return places

    def sync(self) -> None:
        """Put the object that is being filled; if that fails it is given up, and its name with it."""
        filling, self._filling = self._filling, None
        if filling is not None:
            self._put(filling.name, b"".join(filling.parts))

    def read(self, place: SegmentPlace) -> Capture:
        refuse_bad_place(place)
        return unpacked(place, self._bytes(place))

    def holds(self, place: SegmentPlace) -> bool:
        refuse_bad_place(place)
        if place.segment not in self._sizes:
            self._sizes[place.segment] = self._size(place.segment)
        return self._sizes[place.segment] >= place.offset + place.length

    def segments(self) -> Iterator[tuple[str, int]]:
        try:
            for chunk in self._bucket.list(chunk_size=1000):
                for found in chunk:
                    segment = segment_in(found["path"])
                    if segment is not None:
                        yield segment, found["size"]
        except ERRORS as error:
            raise refusal(f"can't list the snapshots at {self._url}", error) from None

    def remove(self, segments: list[str]) -> None:
        for segment in segments:
            if not is_segment(segment):
                raise StoreError(f"segment {segment[:40]!r} can't be removed")
        names = [segment + SUFFIX for segment in segments]
        try:
            for at in range(0, len(names), REMOVED_AT_ONCE):
                self._delete(names[at : at + REMOVED_AT_ONCE])
        except ERRORS as error:
            raise refusal(f"can't remove snapshots at {self._url}", error) from None

    def erase(self, places: Sequence[SegmentPlace]) -> None:
        """The object is put again, as long as it was. A bucket that keeps versions keeps the old one."""
        for place in places:
            refuse_bad_place(place)
            if not self._size(place.segment):
                continue
            data = bytearray(self._whole(place.segment))
            data[place.offset : place.offset + place.length] = pack_erased(place.length)
            try:
                self._bucket.put(place.segment + SUFFIX, bytes(data))
            except ERRORS as error:
                raise refusal(f"can't erase snapshots at {self._url}", error) from None

    def check(self) -> None:
        """Ask for the first names; what only time can mend is no reason not to begin."""
        try:
            next(self.segments(), None)
        except SnapshotsRefused:
            raise
        except SnapshotsAway:
            return

    def close(self) -> None:
        self.sync()

    def _open_object_if_needed(self) -> _Object:
        if self._filling is not None and self._filling.size >= self._max_object_bytes:
            self.sync()
        if self._filling is None:
            if self._number == LAST_NUMBER:
                self._mark, self._number = secrets.token_hex(8), 0
            self._number += 1
            self._filling = _Object(name_of(self._mark, self._number))
            self._filling.add(opening(self._filling.name))
        return self._filling

    def _put(self, segment: str, data: bytes) -> None:
        try:
            self._bucket.put(segment + SUFFIX, data, mode="create")
        except AlreadyExistsError:
            # Nobody else has this name: an answer was lost, and obstore's second try met our first.
            if self._whole(segment) != data:
                raise StoreError(f"{segment}{SUFFIX} is taken at {self._url}") from None
        except ERRORS as error:
            raise refusal(f"can't write snapshots to {self._url}", error) from None

    def _size(self, segment: str) -> int:
        """How large an object is; 0 if it is gone."""
        try:
            return int(self._bucket.head(segment + SUFFIX)["size"])
        except ERRORS as error:
            if isinstance(error, FileNotFoundError) and not is_without_bucket(error):
                return 0
            raise refusal(f"can't read snapshots at {self._url}", error) from None

    def _whole(self, segment: str) -> bytes:
        try:
            return bytes(self._bucket.get(segment + SUFFIX).bytes())
        except ERRORS as error:
            raise refusal(f"can't read snapshots at {self._url}", error) from None

    def _bytes(self, place: SegmentPlace) -> bytes:
        name = place.segment + SUFFIX
        try:
            return bytes(self._bucket.get_range(name, start=place.offset, length=place.length))
        except ERRORS as error:
            if is_beyond_end(error):
                return b""
            if isinstance(error, FileNotFoundError) and not is_without_bucket(error):
                raise StoreCorrupt(f"the snapshot segment {name} is gone") from None
            raise refusal(f"can't read snapshots at {self._url}", error) from None

    def _delete(self, names: list[str]) -> None:
        try:
            self._bucket.delete(names)
        except FileNotFoundError:
            for name in names:
                with suppress(FileNotFoundError):
                    self._bucket.delete(name)


def connect(url: str) -> Bucket:
    """What lasts longer than a hiccup is told, and the worker goes on trying."""
    return buckets.connect(url, RETRY_S)
