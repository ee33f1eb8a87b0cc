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
