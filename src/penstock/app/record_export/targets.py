"""Where an export goes: a file of this machine, or an object of a bucket."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Protocol

from penstock.errors import Refused, UsageError
from penstock.private_files import put_in_place, write_whole
from penstock.snapshots.objects import Objects, object_url

MANIFEST = ".manifest.json"


class Target(Protocol):
    """`spool` is the folder for what is not ready yet."""

    name: str
    spool: Path

    def refuse_taken(self, overwrite: bool) -> None: ...

    def place(self, made: Path, manifest: bytes) -> None:
        """Put the file in place, then its manifest."""
        ...


def target_of(root: Path, to: str, collection: str, form: str) -> Target:
    """`to` is a file, a folder, or an object of a bucket; in a folder, the file has the collection's name."""
    if not to:
        raise UsageError("export to where? It is empty", code="no_target")
    url = object_url(to) if "://" in to and not to.startswith("file:") else None
    name = f"{_safe(collection)}.{form}"
    if url is not None:
        return BucketTarget(root, f"{url}/{name}" if to.endswith("/") else url)
    path = Path(to.removeprefix("file://"))
    return FileTarget(path / name if to.endswith("/") or path.is_dir() else path)


def _safe(collection: str) -> str:
    """The collection as the name of a file."""
    plain = "".join(char if char.isalnum() or char in "-_." else "_" for char in collection[:100])
    return plain.lstrip(".") or "records"


class FileTarget:
    """A file. Its spool lies beside it, so that a rename is enough."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        self.manifest = path.with_name(path.name + MANIFEST)
        self.spool = path.with_name(f".{path.name}.partial")
        if path.parent.exists() and not path.parent.is_dir():
            raise UsageError(f"{path.parent} is no folder", code="no_target")

    def refuse_taken(self, overwrite: bool) -> None:
        if not overwrite and (self.path.exists() or self.path.is_symlink()):
            raise _taken(self.name)

    def place(self, made: Path, manifest: bytes) -> None:
        # The old manifest goes first: it must never stand beside another file.
        self.manifest.unlink(missing_ok=True)
        put_in_place(made, self.path)
        write_whole(self.manifest, manifest)


class BucketTarget:
    """An object. Its spool lies in the project's folder."""

    def __init__(self, root: Path, url: str) -> None:
        self.name = url
        self._objects = Objects(url)
        digest = hashlib.sha256(url.encode()).hexdigest()[:16]
        self.spool = root / ".penstock" / "exports" / digest

    def refuse_taken(self, overwrite: bool) -> None:
        if not overwrite and self._objects.holds(self._objects.name):
            raise _taken(self.name)

    def place(self, made: Path, manifest: bytes) -> None:
        self._objects.put(self._objects.name, made)
        file = made.with_name("manifest.json")
        write_whole(file, manifest)
        self._objects.put(self._objects.name + MANIFEST, file)


def _taken(name: str) -> Refused:
    return Refused(
        f"{name} exists already", "choose another name, or overwrite it", code="export_exists"
    )
