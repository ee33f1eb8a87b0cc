"""Backups of a file: made while it is used, and put in its place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import apsw

from penstock.clock import Clock, SystemClock
from penstock.errors import PenstockError, Refused, Remedy, StoreCorrupt, StoreError
from penstock.private_files import copy_private, create_private
from penstock.store.project_name import name_in
from penstock.store.sqlite.database import SqliteDatabase, translated
from penstock.store.sqlite.migrate import APPLICATION_ID
from penstock.store.workers import Workers

BACKUP_PAGES = 500
# A database is three files: itself, its log, and the log's index.
TAILS = ("", "-wal", "-shm")


def backup(db: SqliteDatabase, target: Path) -> Iterator[float]:
    """Copy the live database, yielding how much is done from 0 to 1; the copy is checked at the end.

    Written beside its target and renamed, so that a half-made backup never has a backup's name.
    """
    part = target.with_name(target.name + ".part")
    create_private(part)
    with translated(target):
        copy = apsw.Connection(str(part))
        with copy.backup("main", db.connection, "main") as step:
            while not step.done:
                step.step(BACKUP_PAGES)
                yield 1.0 - step.remaining / max(1, step.page_count)
        copy.pragma("journal_mode", "delete")
        verdict = copy.pragma("integrity_check")
        copy.close()
    if verdict != "ok":
        part.unlink(missing_ok=True)
        raise StoreCorrupt(f"the backup is damaged ({verdict}); the database itself may be")
    os.replace(part, target)


def restore(
    backup: Path, target: Path, clock: Clock | None = None, project: str | None = None
) -> Path | None:
    """Put a backup in a database's place, after checking it; answers where the old one is kept.

    Leases in a backup are void: what its workers had claimed is released, and no attempt is spent.
    A backup of another project than the one named is refused.
    """
    if not backup.is_file():
        raise StoreError(f"there is no backup at {backup}")
    part = target.with_name(target.name + ".restoring")
    copy_private(backup, part)
    try:
        _verify(part)
        _make_ready(part, clock or SystemClock(), project)
    except PenstockError:
        for tail in TAILS:
            part.with_name(part.name + tail).unlink(missing_ok=True)
        raise
    _sync(part)
    kept = _set_aside(target)
    os.replace(part, target)
    _sync(target.parent)
    return kept


def _verify(path: Path) -> None:
    with translated(path):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            verdict = connection.pragma("integrity_check")
            if verdict != "ok":
                raise StoreCorrupt(f"{path.name} is damaged: {verdict}", "try an older backup")
            if connection.pragma("application_id") != APPLICATION_ID:
                raise Refused(f"{path.name} is not a backup of Penstock's")
        finally:
            connection.close()


def _make_ready(path: Path, clock: Clock, project: str | None) -> None:
    db = SqliteDatabase(path, clock)
    try:
        _refuse_another(name_in(db), project)
        workers = Workers(db)
        for worker in workers.all():
            workers.sign_off(worker.id)
    finally:
        db.close()


def _refuse_another(found: str | None, project: str | None) -> None:
    if None not in (found, project) and found != project:
        raise Refused(
            f"the backup holds the project {found!r}, and this is {project!r}",
            f"for the same project under a new name: write `project: {found}` into penstock.yaml, restore, "
            "change the name",
            code="another_project",
            remedy=Remedy("store.rename"),
        )


def _set_aside(target: Path) -> Path | None:
    """Move the old database away with its log: left in place, that would be replayed into the new one.

    Under a name that nothing has: an earlier restore may have kept the only copy of the live data.
    """
    kept = _free_name(target)
    for tail in TAILS:
        old = target.with_name(target.name + tail)
        if old.exists():
            os.replace(old, kept.with_name(kept.name + tail))
    return kept if kept.exists() else None


def _free_name(target: Path) -> Path:
    for number in count(1):
        mark = "" if number == 1 else f"-{number}"
        kept = target.with_name(f"{target.name}.before-restore{mark}")
        if not any(kept.with_name(kept.name + tail).exists() for tail in TAILS):
            return kept
    raise AssertionError("numbers do not end")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
