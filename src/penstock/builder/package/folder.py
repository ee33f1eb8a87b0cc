"""The folder of a package: written aside, synced, and put in place in one step.

`package` is a link to `packages/NUMBER`, where the number is made of the files themselves. Whoever looks at
any moment, also after a kill or a power cut, finds the whole old package, the whole new one, or none.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from penstock.errors import AlreadyRunning, Refused
from penstock.private_files import FILE_MODE, FOLDER_MODE, sync

LINK, HOME, CHECKSUMS = "package", "packages", "sha256.txt"
_ASIDE, _LOCK = ".new-", ".lock"


class Folder:
    """A package that is being written. Files are synced as they are closed."""

    def __init__(self, outdir: Path, aside: Path) -> None:
        self._outdir = outdir
        self._aside = aside
        self.sums: dict[str, str] = {}
        self.sizes: dict[str, int] = {}

    @contextmanager
    def adding(self, name: str) -> Iterator[BinaryIO]:
        """A file of the package, to be written."""
        path = self._aside / name
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        with open(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with open(path, "rb") as written:
            self.sums[name] = hashlib.file_digest(written, "sha256").hexdigest()
        self.sizes[name] = path.stat().st_size

    def publish(self) -> Path:
        """Write the checksums, and make this the package; the one before goes."""
        lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(self.sums.items()))
        with self.adding(CHECKSUMS) as file:
            file.write(lines.encode())
        sync(self._aside)
        home = self._outdir / HOME
        place = home / hashlib.sha256(lines.encode()).hexdigest()[:16]
        # Under this name lie these very bytes, unless somebody has changed them since.
        if place.exists() and not self._is_at(place):
            shutil.rmtree(place)
        if not place.exists():
            os.rename(self._aside, place)
            sync(home)
        self._point_to(place)
        for other in home.iterdir():
            if other.is_dir() and other != place:
                shutil.rmtree(other)
        return self._outdir / LINK

    def _is_at(self, place: Path) -> bool:
        """Whether the files there are those of this package."""
        return all(_sum(place / name) == digest for name, digest in self.sums.items())

    def _point_to(self, place: Path) -> None:
        beside = self._outdir / f".{LINK}.new"
        beside.unlink(missing_ok=True)
        os.symlink(f"{HOME}/{place.name}", beside)
        os.replace(beside, self._outdir / LINK)
        sync(self._outdir)


@contextmanager
def new_package(outdir: Path) -> Iterator[Folder]:
    """A package to be written below this folder; nothing of it stays if it is not published."""
    home = outdir / HOME
    home.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    link = outdir / LINK
    if link.exists() and not link.is_symlink():
        raise Refused(
            f"{link} exists and is no package of ours",
            "move it, or choose another folder",
            code="export_exists",
        )
    with _locked(home):
        for left in home.glob(f"{_ASIDE}*"):
            shutil.rmtree(left)
        aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=home))
        try:
            yield Folder(outdir, aside)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    descriptor = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise AlreadyRunning(
            "another export writes to the same folder", "wait for its end, or write elsewhere"
        ) from None
    try:
        yield
    finally:
        os.close(descriptor)


def _sum(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""
