"""The disks that data lies on: their kind, their room, and whether a sync reaches them."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from penstock.app.doctor.findings import Area, size
from penstock.app.views.doctor import CheckupFindingView
from penstock.private_files import FILE_MODE, sync
from penstock.settings import Settings
from penstock.store.sqlite.filesystem import MOUNTS, NETWORK_FILE_SYSTEMS, file_system_of

AREA = Area("disk")
# Below the first, the next run may stop in the middle; below the second, soon.
LEAST_BYTES = 64_000_000
FEW_BYTES = 1_000_000_000
FEW_FILES = 1000
SLOW_S = 0.1
TRIES = 5
BLOCK = bytes(4096)
IN_MEMORY = ("tmpfs", "ramfs")


def folders_of(settings: Settings) -> list[Path]:
    """Where this project writes."""
    folders = [settings.root if settings.is_on_postgres else settings.store_file.parent]
    if isinstance(settings.snapshots, Path):
        folders.append(settings.snapshots)
    return folders


def look(folders: Sequence[Path]) -> Iterator[CheckupFindingView]:
    for folder in dict.fromkeys(_there(each) for each in folders):
        yield from _kind(folder)
        yield from _room(folder)
        yield from _synced(folder)


def _there(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists: looking makes none."""
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return folder


def _kind(folder: Path) -> Iterator[CheckupFindingView]:
    with suppress(OSError):
        kind = file_system_of(folder, MOUNTS.read_text())
        if kind in NETWORK_FILE_SYSTEMS:
            yield AREA.problem(
                f"{folder} lies on a network file system ({kind}), where SQLite can be corrupted",
                "put the database on a local disk, or use Postgres (store: postgresql://…)",
            )
        elif kind in IN_MEMORY:
            yield AREA.warning(
                f"{folder} lies in memory ({kind}): a restart of the machine empties it",
                "put the project on a disk",
            )


def _room(folder: Path) -> Iterator[CheckupFindingView]:
    about = os.statvfs(folder)
    free, files = about.f_bavail * about.f_frsize, about.f_favail
    remedy = "free some space; shorten retention: in penstock.yaml, or move the project"
    if free < LEAST_BYTES:
        yield AREA.problem(f"{folder} has {size(free)} left", remedy)
    elif free < FEW_BYTES:
        yield AREA.warning(f"{folder} has {size(free)} left", remedy)
    elif about.f_files and files < FEW_FILES:
        yield AREA.warning(f"{folder} has room for {files} more files", "remove files there")
    else:
        yield AREA.ok(f"{folder} has {size(free)} left")


def _synced(folder: Path) -> Iterator[CheckupFindingView]:
    """A commit is on the disk when fsync returns: so it must work, and its time is the price of a commit."""
    path = folder / f".penstock-doctor-{os.getpid()}"
    try:
        took_s = sorted(_one_sync(path) for _ in range(TRIES))[TRIES // 2]
    except OSError as error:
        yield AREA.problem(
            f"{folder}: writing and syncing a file failed ({error.strerror})",
            f"check the disk, and that this user may write there: ls -ld {shlex.quote(str(folder))}",
        )
        return
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    if took_s > SLOW_S:
        yield AREA.warning(
            f"{folder}: a sync takes {took_s * 1000:,.0f} ms, and each commit waits for one",
            "use a faster disk, or find out what else writes to this one",
        )
    else:
        yield AREA.ok(f"{folder}: a sync takes {took_s * 1000:.1f} ms")


def _one_sync(path: Path) -> float:
    began = time.perf_counter()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, FILE_MODE)
    try:
        os.write(descriptor, BLOCK)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync(path.parent)
    return time.perf_counter() - began
