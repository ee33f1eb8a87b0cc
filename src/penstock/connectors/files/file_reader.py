"""Reading one file: whole, as it was at one moment, and no other file than the one that was listed."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from penstock.connectors.contract import Gone
from penstock.connectors.files.walk import Symlinks
from penstock.counting import count
from penstock.jobs.failures import Transient
from penstock.jobs.outcome import Skip

TRIES = 3
_PLAIN = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_GONE = (errno.ENOENT, errno.ENOTDIR)


def read_file(root: Path, path: str, most: int, symlinks: Symlinks) -> bytes:
    """The bytes of a regular file below the folder; Gone, Skip or Transient if it is none any more."""
    try:
        descriptor = _opened(root, path, symlinks)
    except OSError as error:
        if error.errno in _GONE:
            raise Gone(path) from None
        if error.errno == errno.ELOOP:
            raise Skip("it has become a link, and links are not followed") from None
        raise
    with os.fdopen(descriptor, "rb") as file:
        for _ in range(TRIES):
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise Skip("it is no regular file any more")
            if before.st_size > most:
                raise Skip(f"{count(before.st_size, 'byte')}; max_bytes is {most:,}")
            file.seek(0)
            body = file.read(most + 1)
            after = os.fstat(descriptor)
            is_whole = len(body) == after.st_size
            if is_whole and _stamp(before) == _stamp(after):
                return body
    raise Transient("it changes while it is read", cause="changes while it is read")


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _opened(root: Path, path: str, symlinks: Symlinks) -> int:
    """Folder by folder, so that none of them can be exchanged for a link on the way."""
    if symlinks != "skip":
        whole = os.path.join(root, path)
        real, base = os.path.realpath(whole), os.path.realpath(root)
        if symlinks == "inside" and not real.startswith(base + os.sep):
            raise OSError(errno.ELOOP, "it points outside the folder")
        return os.open(real, _PLAIN | _NO_LINK)
    *folders, name = path.split("/")
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | _NO_LINK
            below = os.open(folder, flags, dir_fd=at)
            os.close(at)
            at = below
        return os.open(name, _PLAIN | _NO_LINK, dir_fd=at)
    finally:
        os.close(at)
