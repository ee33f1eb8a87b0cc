"""What the store needs from the file system: a local disk, and a little space in reserve."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.errors import StoreError
from penstock.private_files import open_private

MOUNTS = Path("/proc/self/mountinfo")
NETWORK_FILE_SYSTEMS = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "afs", "ceph", "glusterfs", "lustre",
    "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "ncpfs", "davfs", "fuse.davfs2",
}  # fmt: skip
RESERVE_BYTES = 4 << 20


def file_system_of(path: Path, mountinfo: str) -> str:
    """The type of the file system a path lies on, by the longest mount point above it."""
    target, best, kind = str(path.absolute()), "", ""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 5 or not right:
            continue
        mount = fields[4].replace("\\040", " ")
        inside = target == mount or target.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, right.split()[0]
    return kind


def refuse_network_file_system(path: Path) -> None:
    """SQLite's shared memory does not work over a network file system: the file gets damaged."""
    try:
        mountinfo = MOUNTS.read_text()
    except OSError:
        return
    kind = file_system_of(path, mountinfo)
    if kind in NETWORK_FILE_SYSTEMS:
        raise StoreError(
            f"{path} lies on a network file system ({kind}), where SQLite can be corrupted",
            "put the database on a local disk, or use Postgres for many hosts",
        )


def identity_of(path: Path) -> tuple[int, int] | None:
    """Which file has this name now; None if none has."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def is_read_only(path: Path) -> bool:
    """Whether there is a file that can be read and not be written, or whose folder can't be."""
    if not path.is_file() or not os.access(path, os.R_OK):
        return False
    return not (os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK))


def read_only_address(path: Path) -> str:
    """How SQLite can read such a file: without its log's index it can't tell what the log adds."""
    log, index = (path.with_name(path.name + tail) for tail in ("-wal", "-shm"))
    if not log.exists() or not log.stat().st_size:
        return f"{path.absolute().as_uri()}?immutable=1"
    if index.exists():
        return f"{path.absolute().as_uri()}?mode=ro"
    raise StoreError(
        f"{path} can't be written, and its log ({log.name}) was not merged into it",
        "copy both files to where they can be written, and open them there",
    )


class Reserve:
    """A file that can be given back when the disk is full, so that finished work can still be written."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(database.name + ".reserve")

    def hold(self) -> bool:
        """Have the reserve in place; False while there is no room for it."""
        try:
            descriptor = open_private(self._path, beside=self._database)
        except (OSError, StoreError):
            self._path.unlink(missing_ok=True)
            return False
        try:
            if os.fstat(descriptor).st_size < RESERVE_BYTES:
                os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
        except OSError:
            self._path.unlink(missing_ok=True)
            return False
        finally:
            os.close(descriptor)
        return True

    def release(self) -> None:
        self._path.unlink(missing_ok=True)
