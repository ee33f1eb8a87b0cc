"""Snapshots in a directory, on a disk of this machine or on one that many hosts have mounted.

A segment that a dead writer left with half a record at its end is never written again, and no place
points there.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from penstock.clock import Clock, SystemClock
from penstock.errors import StoreCorrupt, StoreError, StoreFull, StoreIoError
from penstock.private_files import FILE_MODE, FOLDER_MODE, make_private, own_folder
from penstock.snapshots.segment import (
    IDLE_S,
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
from penstock.snapshots.store import SnapshotsAway
from penstock.snapshots.warc import Capture, is_whole, pack_erased

MAX_SEGMENT_BYTES = 256 * 1024 * 1024
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# Some file systems sync names by themselves and refuse to be asked.
_NEEDS_NO_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP})
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_OVERWRITE = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class DirectorySnapshots:
    """The snapshots under one directory, with one writer's segments open for appending."""

    def __init__(
        self,
        root: Path,
        writer: str,
        max_segment_bytes: int = MAX_SEGMENT_BYTES,
        clock: Clock | None = None,
    ) -> None:
        self._path = root
        self._mark = hashlib.sha256(writer.encode()).hexdigest()[:16]
        self._max_segment_bytes = max_segment_bytes
        self._clock = clock or SystemClock()
        try:
            _make(root)
            self._root = os.open(root, _FOLDER)
        except OSError as error:
            raise _store_error("can't open the snapshots", error) from error
        self._number = 0
        self._segment = ""
        self._file = -1
        self._end = 0
        self._written_at = 0.0
        self._is_synced = True

    def append(self, captures: Sequence[Capture | Packed]) -> list[SegmentPlace]:
        """All or none: if the disk is full, what was written of them is cut off again."""
        if not captures:
            return []
        try:
            self._open_segment_if_needed()
            records = list(packed(captures, self._segment, self._end))
            self._write([record for _, record in records])
        except OSError as error:
            raise self._trouble("can't write snapshots", error) from error
        return [place for place, _ in records]

    def sync(self) -> None:
        if self._is_synced:
            return
        try:
            os.fdatasync(self._file)
        except OSError as error:
            # After a failed sync the kernel forgets what it could not write: start a new segment.
            self._leave_segment()
            raise self._trouble("can't sync snapshots", error) from error
        self._is_synced = True

    def read(self, place: SegmentPlace) -> Capture:
        refuse_bad_place(place)
        return unpacked(place, self._bytes(place))

    def holds(self, place: SegmentPlace) -> bool:
        try:
            refuse_bad_place(place)
            record = self._bytes(place)
        except StoreCorrupt:
            return False
        return len(record) == place.length and is_whole(record, place.hash)

    def segments(self) -> Iterator[tuple[str, int]]:
        try:
            for name in os.listdir(self._root):
                segment = segment_in(name)
                if segment is not None:
                    try:
                        size = os.stat(name, dir_fd=self._root, follow_symlinks=False).st_size
                    except FileNotFoundError:
                        continue
                    yield segment, size
        except OSError as error:
            raise self._trouble("can't list snapshots", error) from error

    def remove(self, segments: list[str]) -> None:
        for segment in segments:
            if segment == self._segment or not is_segment(segment):
                raise StoreError(f"segment {segment[:40]!r} can't be removed")
            try:
                os.unlink(segment + SUFFIX, dir_fd=self._root)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise self._trouble("can't remove snapshots", error) from error

    def erase(self, places: Sequence[SegmentPlace]) -> None:
        """In place: a writer that appends to the segment is not disturbed."""
        for place in places:
            refuse_bad_place(place)
            try:
                file = os.open(place.segment + SUFFIX, _OVERWRITE, dir_fd=self._root)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise self._trouble("can't erase snapshots", error) from error
            try:
                os.pwrite(file, pack_erased(place.length), place.offset)
                os.fsync(file)
            except OSError as error:
                raise self._trouble("can't erase snapshots", error) from error
            finally:
                os.close(file)

    def check(self) -> None:
        """Opening it has shown that it is there."""

    def close(self) -> None:
        try:
            self.sync()
        finally:
            self._leave_segment()
            if self._root >= 0:
                os.close(self._root)
                self._root = -1

    def _bytes(self, place: SegmentPlace) -> bytes:
        try:
            file = os.open(place.segment + SUFFIX, _READ, dir_fd=self._root)
        except OSError as error:
            if error.errno == errno.ESTALE:
                raise self._trouble("can't read snapshots", error) from error
            message = f"the snapshot segment {place.segment}{SUFFIX} can't be opened"
            raise StoreCorrupt(f"{message} ({error.strerror})") from error
        try:
            return os.pread(file, place.length, place.offset)
        except OSError as error:
            raise self._trouble("can't read snapshots", error) from error
        finally:
            os.close(file)

    def _write(self, records: list[bytes]) -> None:
        data = memoryview(b"".join(records))
        self._is_synced = False
        try:
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError:
            self._cut_back()
            raise
        self._end += written
        self._written_at = self._clock.monotonic()

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self._file, self._end)
        except OSError:
            self._leave_segment()

    def _open_segment_if_needed(self) -> None:
        is_abandoned = self._clock.monotonic() - self._written_at >= IDLE_S
        if self._file >= 0 and self._end < self._max_segment_bytes and not is_abandoned:
            return
        self.sync()
        self._leave_segment()
        self._segment, self._file = self._create_segment()
        # The name must be durable before anything refers to it.
        _sync_folder(self._root)
        self._write([opening(self._segment)])

    def _create_segment(self) -> tuple[str, int]:
        """A name that was never used, not even by a segment that is gone."""
        found = (segment_in(name) or "" for name in os.listdir(self._root))
        mine = (int(name[17:]) for name in found if name.startswith(self._mark))
        self._number = max([self._number, *mine])
        while True:
            self._number += 1
            segment = name_of(self._mark, self._number)
            try:
                return segment, os.open(segment + SUFFIX, _CREATE, FILE_MODE, dir_fd=self._root)
            except FileExistsError:
                continue

    def _leave_segment(self) -> None:
        if self._file >= 0:
            with suppress(OSError):  # what is synced is safe, and what is not was never promised
                os.close(self._file)
        self._segment, self._file, self._end, self._is_synced = "", -1, 0, True

    def _trouble(self, message: str, error: OSError) -> StoreError:
        if error.errno == errno.ESTALE:
            self._open_again()
        return _store_error(message, error)

    def _open_again(self) -> None:
        """A file server that came back knows the old handles no more; new ones are had by name.

        The old one stays open: another thread may be about to use its number.
        """
        with suppress(OSError):
            self._root = os.open(self._path, _FOLDER)


def _make(root: Path) -> None:
    """The folder, and its name durable in the folder above it."""
    missing = [folder for folder in (root, *root.parents) if not folder.exists()]
    root.parent.mkdir(parents=True, exist_ok=True)
    root.mkdir(mode=FOLDER_MODE, exist_ok=True)
    if missing[:1] != [root]:
        make_private(own_folder(root))
    for folder in missing:
        above = os.open(folder.parent, _FOLDER)
        try:
            _sync_folder(above)
        finally:
            os.close(above)


def _sync_folder(folder: int) -> None:
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NEEDS_NO_SYNC:
            raise


def _store_error(message: str, error: OSError) -> StoreError:
    if error.errno in _FULL:
        return StoreFull(f"{message}: no space left", "free some space; work resumes by itself")
    if error.errno == errno.EIO:
        return StoreIoError(f"{message}: the disk reported an error", "check the disk")
    if error.errno == errno.ESTALE:
        return SnapshotsAway(f"{message}: the file server has forgotten the folder")
    return StoreError(f"{message} ({error.strerror})")
