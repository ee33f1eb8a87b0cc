"""A database that is a file: copying it while it is in use, and putting a copy in its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.app.views.store import BackupView, RestoreView
from penstock.errors import Refused, StoreError, UsageError

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns


def back_up(
    project: Nouns, target: Path, is_replaced: bool, on_progress: Callable[[float], None]
) -> BackupView:
    """Copy the database to a file that is not part of it."""
    _refuse_target(project.settings.store_file, target, is_replaced)
    for done in project.connection.backup(target):
        on_progress(done)
    return BackupView(file=str(target), bytes=target.stat().st_size)


def _refuse_target(database: Path, target: Path, is_replaced: bool) -> None:
    if target.is_dir() or not target.name:
        raise UsageError(f"{target} is a folder; name a file in it", code="not_a_file")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {target.parent}", code="no_folder")
    beside = (database.with_name(database.name + tail) for tail in ("", "-wal", "-shm"))
    if any(_is_same(target, each) for each in beside):
        raise UsageError(f"{target} is the database itself", code="same_file")
    if target.exists() and not is_replaced:
        raise Refused(f"{target} exists already", "`replace` overwrites it", code="file_exists")


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def restore(project: Nouns, backup: Path, is_dry: bool, actor: str, reason: str) -> RestoreView:
    """Put a backup in the database's place, which nobody works on."""
    target = project.settings.store_file
    if not backup.is_file():
        raise UsageError(f"there is no file {backup}", code="no_file")
    if _is_same(backup, target):
        raise UsageError(f"{backup} is the database itself", code="same_file")
    _refuse_while_working(project)
    kept = None if is_dry else _put_back_alone(project, backup, actor, reason)
    return RestoreView(
        store=str(target),
        file=str(backup),
        kept=None if kept is None else kept.name,
        is_done=not is_dry,
    )


def _refuse_while_working(project: Nouns) -> None:
    from penstock.engine.supervisor.lock import holder_of

    pid = holder_of(project.settings)
    if pid is not None:
        raise Refused(
            f"another Penstock (pid {pid}) is working on this project",
            "stop it first",
            code="store_in_use",
        )
    left_s = _leased_s(project) if project.settings.store_file.exists() else 0.0
    if left_s > 0:
        raise Refused(
            f"a worker still holds a lease for {left_s:.0f} s",
            "stop it, or wait that long",
            code="store_in_use",
        )


def _leased_s(project: Nouns) -> float:
    """For how long a worker may believe to have the database."""
    try:
        workers = project.connection.workers.all()
        return max((w.lease_expires_at for w in workers), default=0.0) - project.now()
    except StoreError:
        return 0.0  # A database that can't be read is what a restore is for.


def _put_back_alone(project: Nouns, backup: Path, actor: str, reason: str) -> Path | None:
    from penstock.engine.supervisor.lock import ProjectLock

    with ProjectLock(project.settings.store_file):
        return _put_back(project, backup, actor, reason)


def _put_back(project: Nouns, backup: Path, actor: str, reason: str) -> Path | None:
    from penstock.store.sqlite.backup import restore as put_back

    # Closed, so that what its log holds is in the file that is kept.
    project.close()
    settings = project.settings
    kept = put_back(backup, settings.store_file, project.clock, settings.project)
    project.connection.upkeep.note_restored(actor, backup.name, reason)
    return kept
