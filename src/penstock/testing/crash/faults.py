"""Faults on purpose: every write, sync and read of the database and the snapshots passes a counter.

A plan looks at each operation before it happens and may end the process (as `kill -9` would),
tear the write in two first, or answer with an error. `PowerCut` also remembers what was not synced
yet, and can put the files into a state in which a power cut may have left them.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import apsw

KILLED = 137
SECTOR = 512
FULL_FOR = 20


class Plan(Protocol):
    """What happens at an operation. May end the process or raise; `write` is what would be done."""

    def before(self, kind: str, path: str, write: Write | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class Write:
    """A write that is about to happen; `tear` does the first half of it."""

    offset: int
    data: bytes
    tear: Callable[[bytes], None]


@dataclass(slots=True)
class Count:
    """Lets everything happen and counts what could have gone wrong."""

    seen: Counter[str] = field(default_factory=Counter)

    def before(self, kind: str, path: str, write: Write | None = None) -> None:
        self.seen[kind] += 1


@dataclass(slots=True)
class KillAt:
    """Ends the process at the n-th write, sync or truncation; an even one tears the write first."""

    point: int
    seen: int = 0

    def before(self, kind: str, path: str, write: Write | None = None) -> None:
        if kind == "read":
            return
        self.seen += 1
        if self.seen == self.point:
            if write is not None and self.point % 2 == 0:
                write.tear(write.data[: len(write.data) // 2])
            os._exit(KILLED)


@dataclass(slots=True)
class FailAt:
    """Fails the n-th operation of a kind (`read`, `write`, `sync`): once, or that one and all after it.

    A disk that is full has space again after a while.
    """

    kind: str
    point: int
    is_sticky: bool = False
    is_full: bool = False
    seen: int = 0
    failed: int = 0

    def before(self, kind: str, path: str, write: Write | None = None) -> None:
        if kind != self.kind:
            return
        self.seen += 1
        if self.is_full and self.failed >= FULL_FOR:
            return
        if self.seen == self.point or (self.is_sticky and self.seen > self.point):
            self.failed += 1
            raise Fault(28 if self.is_full else 5, kind)


class Fault(OSError):
    """An operation that was made to fail."""


@dataclass(slots=True)
class PowerCut:
    """Remembers which writes no sync has covered yet, and drops some of them when the power goes.

    What a sync has covered stays. Of the rest, each write survives or not, whole or in sectors, as
    the seed says, whatever the order they were made in. A file's name is taken to be durable.
    """

    rng: random.Random
    point: int
    seen: int = 0
    durable: dict[str, bytes] = field(default_factory=dict)
    pending: dict[str, list[Write | int]] = field(default_factory=dict)

    def before(self, kind: str, path: str, write: Write | None = None) -> None:
        if kind == "read":
            return
        self.seen += 1
        if self.seen == self.point:
            self._cut()
            os._exit(KILLED)
        if kind == "sync":
            self.durable[path] = Path(path).read_bytes()
            self.pending[path] = []
        elif write is not None:
            self.pending.setdefault(path, []).append(write)

    def truncating(self, path: str, size: int) -> None:
        self.pending.setdefault(path, []).append(size)

    def deleting(self, path: str) -> None:
        self.pending.pop(path, None)
        self.durable.pop(path, None)

    def _cut(self) -> None:
        for path, writes in self.pending.items():
            image = bytearray(self.durable.get(path, b""))
            for write in writes:
                self._replay(image, write)
            Path(path).write_bytes(image)

    def _replay(self, image: bytearray, write: Write | int) -> None:
        if self.rng.random() < 0.5:
            return
        if isinstance(write, int):
            del image[write:]
            return
        data = write.data
        if self.rng.random() < 0.2:
            data = data[: self.rng.randrange(0, len(data) + 1, SECTOR)]
        if len(image) < write.offset:
            image.extend(bytes(write.offset - len(image)))
        image[write.offset : write.offset + len(data)] = data


def _error(kind: str, fault: Fault) -> Exception:
    """The error as SQLite's own file layer would report it."""
    if fault.errno == 28:
        return apsw.FullError("injected")
    code = {
        "read": apsw.SQLITE_IOERR_READ,
        "write": apsw.SQLITE_IOERR_WRITE,
        "sync": apsw.SQLITE_IOERR_FSYNC,
    }[kind]
    error = apsw.exception_for(code)
    error.args = ("injected",)
    return error


class FaultyFile(apsw.VFSFile):
    """A database file that asks the plan first."""

    def __init__(self, plan: Plan, base: str, name: Any, flags: list[int]) -> None:
        super().__init__(base, name, flags)
        self._plan = plan
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)

    def _ask(self, kind: str, write: Write | None = None) -> None:
        try:
            self._plan.before(kind, self._path, write)
        except Fault as fault:
            raise _error(kind, fault) from None

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._ask("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        def tear(half: bytes) -> None:
            apsw.VFSFile.xWrite(self, half, offset)

        self._ask("write", Write(offset, bytes(data), tear))
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._ask("sync")
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._ask("truncate")
        if isinstance(self._plan, PowerCut):
            self._plan.truncating(self._path, size)
        super().xTruncate(size)


class FaultyDisk(apsw.VFS):
    """A file system for SQLite whose files ask the plan first. Use it as `vfs=disk.name`."""

    _made = 0

    def __init__(self, plan: Plan) -> None:
        FaultyDisk._made += 1
        self.name = f"faulty-{FaultyDisk._made}"
        self._plan = plan
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> FaultyFile:  # noqa: N802
        return FaultyFile(self._plan, "", name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self._plan.before("delete", filename)
        super().xDelete(filename, syncdir)
        if isinstance(self._plan, PowerCut):
            self._plan.deleting(filename)


class FaultyOs:
    """`os` as the snapshots use it, with the same plan for what they write and sync."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, file: int, data: memoryview) -> int:
        def tear(half: bytes) -> None:
            os.write(file, half)

        path = os.readlink(f"/proc/self/fd/{file}")
        self._plan.before("write", path, Write(os.fstat(file).st_size, bytes(data), tear))
        return os.write(file, data)

    def fdatasync(self, file: int) -> None:
        self._plan.before("sync", os.readlink(f"/proc/self/fd/{file}"))
        os.fdatasync(file)

    def ftruncate(self, file: int, size: int) -> None:
        path = os.readlink(f"/proc/self/fd/{file}")
        self._plan.before("truncate", path)
        if isinstance(self._plan, PowerCut):
            self._plan.truncating(path, size)
        os.ftruncate(file, size)


def fresh_folder(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
