"""Where captures are written and found again.

Each writer appends to segments of its own, so there is nothing to lock; a segment that a dead
writer left with half a record at its end is never written again, and no place points there.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import StoreCorrupt, StoreError, StoreFull, StoreIoError
from penstock.snapshots.warc import (
    BadRecord,
    Capture,
    content_hash,
    pack_info,
    pack_response,
    unpack_response,
)
from penstock.version import __version__

MAX_SEGMENT_BYTES = 256 * 1024 * 1024
_SUFFIX = ".warc.gz"
_SEGMENT = re.compile(r"[0-9a-f]{16}-[0-9]{6}")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a capture lies, and the hash its body must have."""

    hash: str
    segment: str
    offset: int
    length: int


class SnapshotStore:
    """The snapshots under one directory, with one writer's segments open for appending.

    `writer` tells writers apart and appears in no file name. One thread appends; any may read.
    """

    def __init__(self, root: Path, writer: str, max_segment_bytes: int = MAX_SEGMENT_BYTES) -> None:
        self._writer = hashlib.sha256(writer.encode()).hexdigest()[:16]
        self._max_segment_bytes = max_segment_bytes
        try:
            root.mkdir(parents=True, exist_ok=True)
            self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise _store_error("can't open the snapshots", error) from error
        self._segment = ""
        self._file = -1
        self._end = 0
        self._is_synced = True

    def append(self, captures: list[Capture]) -> list[Place]:
        """Write captures and say where they are; they are durable only after `sync`.

        All or none: if the disk is full, what was written of them is cut off again.
        """
        if not captures:
            return []
        try:
            self._open_segment_if_needed()
            places, packed = self._pack(captures)
            self._write(packed)
        except OSError as error:
            raise _store_error("can't write snapshots", error) from error
        return places

    def sync(self) -> None:
        """Make everything appended so far survive a power cut."""
        if self._is_synced:
            return
        try:
            os.fdatasync(self._file)
        except OSError as error:
            # After a failed sync the kernel forgets what it could not write: start a new segment.
            self._leave_segment()
            raise _store_error("can't sync snapshots", error) from error
        self._is_synced = True

    def read(self, place: Place) -> Capture:
        """The capture at this place; StoreCorrupt if it is not there as it was written."""
        packed = self._bytes(place)
        try:
            if len(packed) != place.length:
                raise BadRecord("it is cut off")
            return unpack_response(packed, place.hash)
        except BadRecord as error:
            where = f"{place.segment}{_SUFFIX} at {place.offset}"
            raise StoreCorrupt(f"the snapshot in {where} can't be read: {error}") from None

    def close(self) -> None:
        """Sync and let go of the files."""
        try:
            self.sync()
        finally:
            self._leave_segment()
            if self._root >= 0:
                os.close(self._root)
                self._root = -1

    def untouched_since(self, moment: float) -> list[str]:
        """Segments that nobody has written to since then (UTC, seconds)."""
        files = [name for name in os.listdir(self._root) if name.endswith(_SUFFIX)]
        quiet = [name for name in files if os.stat(name, dir_fd=self._root).st_mtime < moment]
        names = sorted(name.removesuffix(_SUFFIX) for name in quiet)
        return [name for name in names if _SEGMENT.fullmatch(name) and name != self._segment]

    def remove(self, segment: str) -> None:
        """Delete a whole segment, except the one being written; gone already is fine."""
        if segment == self._segment or not _SEGMENT.fullmatch(segment):
            raise StoreError(f"segment {segment[:40]!r} can't be removed")
        try:
            os.unlink(segment + _SUFFIX, dir_fd=self._root)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _store_error("can't remove snapshots", error) from error

    def _bytes(self, place: Place) -> bytes:
        if not _SEGMENT.fullmatch(place.segment) or place.offset < 0 or place.length < 0:
            raise StoreCorrupt(f"{place.segment[:40]!r} is not a snapshot segment")
        try:
            file = os.open(place.segment + _SUFFIX, _READ, dir_fd=self._root)
        except OSError as error:
            message = f"the snapshot segment {place.segment}{_SUFFIX} can't be opened"
            raise StoreCorrupt(f"{message} ({error.strerror})") from error
        try:
            return os.pread(file, place.length, place.offset)
        except OSError as error:
            raise _store_error("can't read snapshots", error) from error
        finally:
            os.close(file)

    def _pack(self, captures: list[Capture]) -> tuple[list[Place], list[bytes]]:
        places, packed, at = [], [], self._end
        for capture in captures:
            digest = content_hash(capture.body)
            record = pack_response(capture, digest, self._record_id(at))
            places.append(Place(digest, self._segment, at, len(record)))
            packed.append(record)
            at += len(record)
        return places, packed

    def _record_id(self, offset: int) -> str:
        """Unique because a segment is written once, and the same whenever it is written again."""
        name = f"{self._segment}/{offset}".encode()
        return str(uuid.UUID(bytes=hashlib.blake2s(name, digest_size=16).digest(), version=4))

    def _write(self, packed: list[bytes]) -> None:
        data = memoryview(b"".join(packed))
        self._is_synced = False
        try:
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError:
            self._cut_back()
            raise
        self._end += written

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self._file, self._end)
        except OSError:
            self._leave_segment()

    def _open_segment_if_needed(self) -> None:
        if self._file >= 0 and self._end < self._max_segment_bytes:
            return
        self.sync()
        self._leave_segment()
        self._segment, self._file = self._create_segment()
        # The name must be durable before anything refers to it.
        os.fsync(self._root)
        self._write([pack_info(f"penstock/{__version__}", self._record_id(0), self._segment)])

    def _create_segment(self) -> tuple[str, int]:
        mine = [name for name in os.listdir(self._root) if name.startswith(self._writer)]
        number = max((int(name[17:23]) for name in mine if _SEGMENT.match(name)), default=0)
        while True:
            number += 1
            segment = f"{self._writer}-{number:06d}"
            try:
                return segment, os.open(segment + _SUFFIX, _CREATE, 0o644, dir_fd=self._root)
            except FileExistsError:
                continue

    def _leave_segment(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._segment, self._file, self._end, self._is_synced = "", -1, 0, True


_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def _store_error(message: str, error: OSError) -> StoreError:
    if error.errno in _FULL:
        return StoreFull(f"{message}: no space left", "free some space; work resumes by itself")
    if error.errno == errno.EIO:
        return StoreIoError(f"{message}: the disk reported an error", "check the disk")
    return StoreError(f"{message} ({error.strerror})")
