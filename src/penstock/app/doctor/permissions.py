"""Who else can read or write the project's files. Nothing is closed here, only named."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from penstock.app.doctor.findings import Area
from penstock.app.views.doctor import CheckupFindingView
from penstock.private_files import own_folder
from penstock.settings import Settings
from penstock.store.sqlite.database import files_of

AREA = Area("permissions")


def look(settings: Settings) -> Iterator[CheckupFindingView]:
    """Data and `.env` belong to their owner alone; code and configuration are written by nobody else."""
    found = [*_private(settings), *_trusted(settings)]
    yield from found
    if not found:
        yield AREA.ok("data files can be read by their owner alone (0600, folders 0700)")


def _private(settings: Settings) -> Iterator[CheckupFindingView]:
    files = [] if settings.is_on_postgres else files_of(settings.store_file)
    files.append(settings.root / ".env")
    if isinstance(settings.snapshots, Path):
        files += own_folder(settings.snapshots)
    for file in files:
        about = _about(file)
        if about is None:
            continue
        if about.st_mode & stat.S_IRWXO:
            mode = "0700" if stat.S_ISDIR(about.st_mode) else "0600"
            yield AREA.warning(
                f"{file} can be reached by everybody (mode {stat.S_IMODE(about.st_mode):04o})",
                f"chmod {mode} {shlex.quote(str(file))}",
            )
        if about.st_uid not in (os.geteuid(), 0):
            yield AREA.warning(
                f"{file} belongs to user {about.st_uid}, and this is user {os.geteuid()}",
                f"run Penstock as its owner, or: chown {os.geteuid()} {shlex.quote(str(file))}",
            )


def _trusted(settings: Settings) -> Iterator[CheckupFindingView]:
    for file in (settings.root, settings.file):
        about = _about(file)
        if about is not None and about.st_mode & stat.S_IWOTH and not about.st_mode & stat.S_ISVTX:
            yield AREA.problem(
                f"{file} can be written by everybody, and its code runs with your rights",
                f"chmod o-w {shlex.quote(str(file))}",
            )


def _about(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except OSError:
        return None
