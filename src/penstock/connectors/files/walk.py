"""The walk through a folder: every file that is meant, and what could not be looked at."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from penstock.connectors.files.globs import Globs, ignore_rules

Symlinks = Literal["skip", "inside", "follow"]
LARGEST_IGNORE_FILE = 262_144
DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Found:
    """A file, by its path below the folder; or a folder that can't be listed, and why."""

    path: str
    size: int = 0
    stamp: str = ""
    changed_at: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which files are meant."""

    include: Globs
    exclude: Globs
    ignore_files: tuple[str, ...] = ()
    hidden: bool = False
    symlinks: Symlinks = "skip"


@dataclass(slots=True)
class _Folder:
    path: str
    prefix: str
    depth: int
    ignores: tuple[Globs, ...]
    above: frozenset[tuple[int, int]] = field(default_factory=frozenset)


def walk(root: Path, wanted: Wanted) -> Iterator[Found]:
    """Folder by folder, each by the order of names. Raises OSError if the folder itself can't be listed."""
    real_root = os.path.realpath(root)
    waiting = [_Folder(str(root), "", 0, ())]
    while waiting:
        folder = waiting.pop()
        try:
            entries = _entries(folder.path)
            ignores = (*folder.ignores, *_ignores(folder, wanted))
            above = (
                folder.above | {_identity(folder.path)}
                if wanted.symlinks != "skip"
                else folder.above
            )
        except OSError as error:
            if not folder.prefix:
                raise
            yield Found(folder.prefix, problem=error.strerror or type(error).__name__)
            continue
        below: list[_Folder] = []
        while entries:
            # Not held any longer than needed: it keeps its status, and a folder may have very many.
            entry = entries.pop()
            path = folder.prefix + entry.name
            found = _looked_at(entry, path, wanted, ignores, real_root)
            if found is None:
                continue
            if stat.S_ISREG(found.st_mode):
                if _is_included(path, wanted):
                    yield _file(path, found)
            elif _is_new_folder(entry, found, folder, wanted, above):
                below.append(_Folder(entry.path, f"{path}/", folder.depth + 1, ignores, above))
        waiting += reversed(below)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """The last one first."""
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name, reverse=True)


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _ignores(folder: _Folder, wanted: Wanted) -> Iterator[Globs]:
    for name in wanted.ignore_files:
        file = os.path.join(folder.path, name)
        try:
            if not stat.S_ISREG(os.lstat(file).st_mode):
                continue
            with open(file, encoding="utf-8", errors="replace") as text:
                yield ignore_rules(text.read(LARGEST_IGNORE_FILE), folder.prefix)
        except OSError:
            continue


def _looked_at(
    entry: os.DirEntry[str], path: str, wanted: Wanted, ignores: tuple[Globs, ...], real_root: str
) -> os.stat_result | None:
    """The status of what is wanted; None for what is not, is no file or folder, or is gone again."""
    try:
        if entry.name.startswith(".") and not wanted.hidden:
            return None
        if entry.is_symlink() and not _may_follow(entry, wanted, real_root):
            return None
        found = entry.stat(follow_symlinks=True)
    except OSError:
        return None
    is_folder = stat.S_ISDIR(found.st_mode)
    if not is_folder and not stat.S_ISREG(found.st_mode):
        return None
    if wanted.exclude.decide(path, is_folder):
        return None
    # The nearest ignore file that says anything decides.
    said = next(
        (s for g in reversed(ignores) if (s := g.decide(path, is_folder)) is not None), False
    )
    return None if said else found


def _may_follow(entry: os.DirEntry[str], wanted: Wanted, real_root: str) -> bool:
    if wanted.symlinks == "skip":
        return False
    if wanted.symlinks == "follow":
        return True
    return os.path.realpath(entry.path).startswith(real_root + os.sep)


def _is_included(path: str, wanted: Wanted) -> bool:
    return not wanted.include or bool(wanted.include.decide(path, False))


def _is_new_folder(
    entry: os.DirEntry[str],
    found: os.stat_result,
    folder: _Folder,
    wanted: Wanted,
    above: frozenset[tuple[int, int]],
) -> bool:
    """A link to a folder that it stands in would never end."""
    if not stat.S_ISDIR(found.st_mode) or folder.depth >= DEEPEST:
        return False
    return wanted.symlinks == "skip" or (found.st_dev, found.st_ino) not in above


def _file(path: str, found: os.stat_result) -> Found:
    # Up to the dot it is equal for equal content.
    stamp = f"{found.st_size}.{found.st_mtime_ns:x}.{found.st_ctime_ns:x}"
    changed_at = max(found.st_mtime, found.st_ctime)
    return Found(path, found.st_size, stamp, changed_at)
