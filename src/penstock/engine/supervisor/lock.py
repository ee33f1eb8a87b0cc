"""One supervisor per SQLite file: two would both believe that the other's workers are dead."""

from __future__ import annotations

import fcntl
import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType

from penstock.errors import AlreadyRunning, Remedy
from penstock.private_files import open_private
from penstock.settings import Settings


class ProjectLock:
    """Held for as long as the process lives; the kernel lets go of it when it dies, however it dies."""

    def __init__(self, store_file: Path) -> None:
        self._path = lock_file(store_file)
        # Held until it is released; whoever could open it could keep us out.
        self._file = os.fdopen(open_private(self._path, beside=store_file), "r+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            pid = _holder(store_file)
            raise AlreadyRunning(
                f"another Penstock{f' (pid {pid})' if pid else ''} is working on {store_file.name}",
                "stop it first, or let it do the work",
                remedy=Remedy("runs.start"),
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def release(self) -> None:
        self._file.close()


def locked(settings: Settings) -> AbstractContextManager[None]:
    """The project to ourselves, where only one may work on it; on a server many may."""
    return nullcontext() if settings.is_on_postgres else ProjectLock(settings.store_file)


def lock_file(store_file: Path) -> Path:
    """Beside the file itself, not beside a link to it: by whatever name it is opened, it is one project."""
    real = store_file.resolve()
    return real.with_name(real.name + ".lock")


def holder_of(settings: Settings) -> int | None:
    """The process that has this project to itself now; None if there is none, or many may have it."""
    return None if settings.is_on_postgres else _holder(settings.store_file)


def _holder(store_file: Path) -> int | None:
    try:
        with open(os.open(lock_file(store_file), os.O_RDONLY | os.O_NOFOLLOW)) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return int(file.read() or 0) or None
    except (OSError, ValueError):
        return None
    return None
