"""Which snapshots a project has: a folder, or a bucket of an object store."""

from __future__ import annotations

from pathlib import Path

from penstock.errors import ConfigError
from penstock.snapshots.directory import DirectorySnapshots
from penstock.snapshots.store import SnapshotStore


def open_snapshots(where: Path | str, writer: str) -> SnapshotStore:
    """The snapshots at this place, as `snapshots` in the settings names it: a folder or a URL.

    `writer` tells writers apart. It appears in no name, and two writers of one name do no harm.
    """
    if isinstance(where, Path):
        return DirectorySnapshots(where, writer)
    try:
        from penstock.snapshots.bucket import BucketSnapshots
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "obstore":
            raise
        scheme = where.partition(":")[0]
        raise ConfigError(
            f"snapshots on {scheme}:// need obstore, which is not installed",
            "pip install 'penstock[blob]'",
        ) from None
    return BucketSnapshots(where)
