"""One supervisor per SQLite file: two would both believe that the other's workers are dead."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from penstock.errors import AlreadyRunning


class ProjectLock:
    """Held for as long as the process lives; the kernel lets go of it when it dies, however it dies."""

    def __init__(self, store_file: Path) -> None:
        self._path = lock_file(store_file)
        self._file = open(self._path, "a+")  # noqa: SIM115  held until close()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            pid = holder_of(store_file)
            raise AlreadyRunning(
                f"another Penstock{f' (pid {pid})' if pid else ''} is working on {store_file.name}",
                "stop it first, or let it do the work: penstock run --detach",
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        self._file.close()


def lock_file(store_file: Path) -> Path:
    return store_file.with_name(store_file.name + ".lock")


def holder_of(store_file: Path) -> int | None:
    """The process that works on this file now; None if there is none."""
    try:
        with open(lock_file(store_file)) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return int(file.read() or 0) or None
    except (FileNotFoundError, ValueError):
        return None
    return None
