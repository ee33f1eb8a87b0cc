"""Files of ours: only their owner may read them, and none is opened through a link that somebody left there.

In:    paths whose names others can guess: the database and what lies beside it, backups, snapshots, reports.
Out:   files with mode 0600 and folders with 0700.
Never: following a symbolic link to write, taking away what an operator has granted to a group.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from penstock.errors import StoreError

FILE_MODE = 0o600
FOLDER_MODE = 0o700
COPY_BYTES = 1 << 20
_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def own_folder(root: Path) -> list[Path]:
    """The folder, unless there is more in it than ours: a project with its code."""
    return [] if (root / "penstock.yaml").exists() else [root]


def open_private(path: Path, beside: Path | None = None) -> int:
    """The file to read and write, made if it is not there, with what it holds.

    Refused if it is a link, no regular file, or somebody else's. What root makes `beside` another file
    belongs to the owner of that one: it would keep him out.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _SAFE, FILE_MODE)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise _odd(path, "is a symbolic link") from None
        raise
    try:
        _check(descriptor, path, beside)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def create_private(path: Path) -> None:
    """An empty file under this name, whatever was there before; a link is replaced, not followed."""
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, FILE_MODE))


def touch_private(path: Path) -> None:
    """Have the file, empty if it was not there; a link that leads nowhere is followed by nobody."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, FILE_MODE))


def copy_private(source: Path, target: Path) -> None:
    """A copy under a name that is free or becomes so; a link that has it is replaced, not followed."""
    target.unlink(missing_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, FILE_MODE)
    with open(source, "rb") as origin, open(descriptor, "wb") as copy:
        shutil.copyfileobj(origin, copy, COPY_BYTES)


def open_report(path: Path | str) -> TextIO:
    """A file that an operator has named, to be written: for its owner only, unless it was there before."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    return open(os.open(path, flags, FILE_MODE), "w", encoding="utf-8", errors="backslashreplace")


def open_new(path: Path | str) -> BinaryIO:
    """A file that an operator has named, for its owner only; refused if it is there, even as a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return open(os.open(path, flags, FILE_MODE), "wb")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there as a whole or as it was before: write, sync, rename."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    with open(descriptor, "wb") as file:
        file.write(data)
    put_in_place(beside, path)


def put_in_place(made: Path, path: Path) -> None:
    """Sync a file that was written, and give it its name for good."""
    sync(made)
    os.replace(made, path)
    sync(path.parent)


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private(paths: Iterable[Path]) -> list[Path]:
    """Close what everybody can read or write; answers with what had to be.

    What only a group can reach was opened to it by somebody, and is left.
    """
    return [path for path in paths if _close(path)]


def _close(path: Path) -> bool:
    try:
        found = os.lstat(path)
        is_folder = stat.S_ISDIR(found.st_mode)
        if not found.st_mode & stat.S_IRWXO or not (is_folder or stat.S_ISREG(found.st_mode)):
            return False
        descriptor = os.open(path, os.O_RDONLY | _SAFE)
    except OSError:
        return False
    try:
        os.fchmod(descriptor, FOLDER_MODE if is_folder else FILE_MODE)
    except OSError:  # somebody else's, or a file system that can't be written
        return False
    finally:
        os.close(descriptor)
    return True


def _check(descriptor: int, path: Path, beside: Path | None) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise _odd(path, "is not a regular file")
    owner = _owner(beside)
    if os.geteuid() == 0 and owner is not None and found.st_uid == 0:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
    elif found.st_uid not in (os.geteuid(), 0, owner.st_uid if owner is not None else 0):
        raise _odd(path, "belongs to another user")
    if found.st_mode & stat.S_IRWXO:
        with suppress(OSError):
            os.fchmod(descriptor, FILE_MODE)


def _owner(beside: Path | None) -> os.stat_result | None:
    try:
        return os.stat(beside) if beside is not None else None
    except OSError:
        return None


def _odd(path: Path, problem: str) -> StoreError:
    return StoreError(f"{path} {problem}", "remove it; Penstock makes its own")
