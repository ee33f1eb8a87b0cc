"""Files in a folder that a pattern means, and a stamp for each that changes when the file does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from penstock.settings.pattern import Pattern, pattern_of


def matching(patterns: Sequence[str]) -> list[str]:
    """The files that these patterns mean, by their whole paths, sorted; none where there is no folder."""
    found: set[str] = set()
    for text in patterns:
        pattern = pattern_of(text)
        found.update(scan(Path(os.path.normpath(pattern.root)), pattern) or {})
    return sorted(found)


def scan(root: Path, pattern: Pattern) -> dict[str, str] | None:
    """A stamp for every file that is meant, by its whole path; None if the folder can't be read.

    Follows no link, to a folder or to a file: it may lead anywhere, and whoever can put files into the folder
    could have others read that he can't read himself.
    """
    found: dict[str, str] = {}
    folders = [(str(root), "", 1)]
    while folders:
        folder, prefix, depth = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = prefix + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if pattern.depth is None or depth < pattern.depth:
                            folders.append((entry.path, f"{name}/", depth + 1))
                    elif pattern.holds(name):
                        stamp = _stamp(entry)
                        if stamp is not None:
                            found[entry.path] = stamp
        except OSError:
            if not prefix:
                return None
    return found


def _stamp(entry: os.DirEntry[str]) -> str | None:
    try:
        if not entry.is_file(follow_symlinks=False):
            return None
        status = entry.stat(follow_symlinks=False)
    except OSError:  # it has gone in between
        return None
    return f"{status.st_mtime_ns}:{status.st_size}"
