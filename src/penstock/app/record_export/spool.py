"""The spool of an export: what was read so far, and from where to go on after a kill.

Records are appended as lines of JSON and synced before the note that counts them is replaced, so the note
never says more than the file holds; what the file holds beyond it is cut off. The spool lies in a folder of
its own, which only one process has at a time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from penstock.errors import AlreadyRunning, UsageError
from penstock.private_files import FILE_MODE, FOLDER_MODE, copy_private, write_whole
from penstock.schemas.shape import Shape

ROWS, NOTE, LOCK = "records.jsonl", "progress.json", "lock"


class Wanted(msgspec.Struct, frozen=True):
    """What is exported: a spool of something else is of no use."""

    project: str
    collection: str
    format: str
    since: str | None
    run: int | None
    include_private: bool


class Progress(msgspec.Struct):
    """How far the export has read: up to `upto`, behind `after_key`, with so much in the file."""

    wanted: Wanted
    upto: str
    after_key: str = ""
    bytes: int = 0
    records: int = 0
    deletions: int = 0
    private: int = 0
    without_score: int = 0
    is_read: bool = False
    # Chained over the records: their keys and versions, in the order of the file.
    versions: str = ""
    shape: Shape = msgspec.field(default_factory=Shape)


class Spool:
    """The folder of one export that is being written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = folder / ROWS

    @classmethod
    @contextmanager
    def locked(cls, folder: Path) -> Iterator[Self]:
        """The spool in this folder, while nobody else uses it."""
        try:
            folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        except OSError as error:
            raise UsageError(
                f"can't write in {folder.parent}: {error.strerror}",
                "name a file in a folder that you may write to",
                code="no_target",
            ) from None
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise AlreadyRunning(
                    "another export writes to the same place",
                    "wait for its end, or write elsewhere",
                ) from None
            yield cls(folder)
        finally:
            os.close(descriptor)

    def resume(self, wanted: Wanted) -> Progress | None:
        """What an export of the same was interrupted at; None where there is none, or another."""
        try:
            found = msgspec.json.decode((self.folder / NOTE).read_bytes(), type=Progress)
            is_usable = found.wanted == wanted and self.rows.stat().st_size >= found.bytes
        except (OSError, msgspec.DecodeError):
            return None
        if not is_usable:
            return None
        os.truncate(self.rows, found.bytes)
        return found

    def begin(self, wanted: Wanted, upto: str) -> Progress:
        """A new one, whatever was there before."""
        for each in self.folder.iterdir():
            if each.name != LOCK:
                each.unlink()
        os.close(os.open(self.rows, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))
        progress = Progress(wanted, upto)
        self.note(progress)
        return progress

    @contextmanager
    def appending(self, progress: Progress) -> Iterator[Appender]:
        with open(self.rows, "ab") as file:
            yield Appender(self, progress, file.fileno())

    def each(self) -> Iterator[dict[str, Any]]:
        """The records that were read, one by one."""
        decode = msgspec.json.Decoder().decode
        with open(self.rows, "rb") as file:
            for line in file:
                yield decode(line)

    def copy_to(self, path: Path) -> None:
        """The lines under another name; the spool keeps them until the export is in place."""
        try:
            os.link(self.rows, path)
        except OSError:  # a file system without links
            copy_private(self.rows, path)

    def drop(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def note(self, progress: Progress) -> None:
        write_whole(self.folder / NOTE, msgspec.json.encode(progress))


class Appender:
    """Adds records to a spool, and notes them."""

    def __init__(self, spool: Spool, progress: Progress, descriptor: int) -> None:
        self._spool = spool
        self._descriptor = descriptor
        self._lines: list[bytes] = []
        self.progress = progress

    def add(self, record: dict[str, Any]) -> None:
        progress = self.progress
        self._lines += [msgspec.json.encode(record), b"\n"]
        said = f"{progress.versions}\n{record['key']}\t{record['version']}"
        progress.versions = hashlib.sha256(said.encode()).hexdigest()
        progress.without_score += record["score"] is None
        if record["is_removed"]:
            progress.deletions += 1
        else:
            progress.records += 1
            progress.shape.add(record["data"])

    def note(self, after_key: str | None, *, is_read: bool = False) -> None:
        """Make durable what was added, and from where to go on."""
        data = b"".join(self._lines)
        self._lines.clear()
        written = 0
        while written < len(data):
            written += os.write(self._descriptor, data[written:])
        os.fsync(self._descriptor)
        self.progress.bytes += len(data)
        self.progress.is_read = is_read
        if after_key is not None:
            self.progress.after_key = after_key
        self._spool.note(self.progress)
