"""`penstock db`: the database itself: check it, back it up, put a backup back, migrate it, move it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import db_copy, db_grants, db_migrate, db_rename, exits
from penstock.cli.asking import add_yes, confirm
from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command, add_json
from penstock.cli.wording import count
from penstock.errors import Refused, StoreError, UsageError

if TYPE_CHECKING:
    from penstock.project import Project

DESCRIPTION = """\
Check the database, make a backup of it while it is in use, put a backup back, bring its schema up to
date, or move the project to another database."""
EXAMPLES = """\
  penstock db check
  penstock db backup penstock-monday.db
  penstock db restore penstock-monday.db
  penstock db migrate --plan
  penstock db copy sqlite:penstock.db postgresql://penstock@db.example.com/shop"""
CHECK = """\
Read the whole database: SQLite's own check, whether counters, jobs, items and snapshots agree, and
whether every stored page can be read as it was fetched. Pages in a bucket are only looked for, unless
--full. Ends with 5 if anything is wrong."""
BACKUP = """\
Copy the database while work goes on. The copy is checked, and appears under its name only when it is
whole."""
RESTORE = """\
Put a backup in the database's place, after checking it. Refused while anything works on the project.
The present file is kept beside it, with .before-restore at the end of its name; no file that an earlier
restore has kept is overwritten."""
STEP = 0.1
PAGES_A_NOTE = 10_000


def register(commands: Commands) -> None:
    parser = add_command(
        commands,
        "db",
        "check, backup, restore, migrate, copy, rename, grants",
        DESCRIPTION,
        EXAMPLES,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=True)
    checking = add_command(verbs, "check", "is it sound?", CHECK, "  penstock db check")
    depth = checking.add_mutually_exclusive_group()
    depth.add_argument(
        "--quick", action="store_true", help="look for the stored pages, and read none of them"
    )
    depth.add_argument(
        "--full", action="store_true", help="read every stored page, also from a bucket"
    )
    add_json(checking)
    checking.set_defaults(run=check)
    saving = add_command(
        verbs, "backup", "copy it, while in use", BACKUP, "  penstock db backup monday.db"
    )
    saving.set_defaults(run=backup)
    restoring = add_command(
        verbs, "restore", "put a copy back", RESTORE, "  penstock db restore monday.db"
    )
    restoring.set_defaults(run=restore)
    for each in (saving, restoring):
        each.add_argument("file", type=Path, metavar="FILE", help="the backup")
        add_yes(each)
    db_migrate.register(verbs)
    db_copy.register(verbs)
    db_rename.register(verbs)
    db_grants.register(verbs)


def check(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened, require_database

    out: Output = args.out
    with opened(args) as project:
        require_database(project)
        problems = project.connection.check()
        problems += _check_pages(project, args)
        name = project.settings.store_name
    if args.json:
        out.json_list(problems)
    else:
        for problem in problems:
            out.line(problem)
        out.line(f"{name}: {count(len(problems), 'problem') if problems else 'sound'}")
    return exits.STORE if problems else exits.DONE


def _check_pages(project: Project, args: argparse.Namespace) -> list[str]:
    from penstock.project.soundness import check_snapshots

    is_local = isinstance(project.settings.snapshots, Path)
    problems: list[str] = []
    pages = shown = 0
    for checked in check_snapshots(project, reads=args.full or (is_local and not args.quick)):
        problems += checked.problems
        pages += checked.payloads
        if pages - shown >= PAGES_A_NOTE:
            shown = pages
            args.out.note(f"{count(pages, 'stored page')} checked")
    return problems


def backup(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened, require_database

    with opened(args) as project:
        _refuse_on_server(project)
        require_database(project)
        _refuse_target(project, args)
        shown = 0.0
        for done in project.connection.backup(args.file):
            if done - shown >= STEP:
                shown = done
                args.out.note(f"{done:.0%}")
    args.out.line(f"{args.file}: {count(args.file.stat().st_size, 'byte')}, checked")
    return exits.DONE


def _refuse_on_server(project: Project) -> None:
    if project.settings.is_on_postgres:
        raise Refused(
            f"{project.settings.store_name} is a database on a server, not a file",
            "its own tools back it up: pg_dump, pg_restore; `penstock db copy` makes a file of it",
        )


def _refuse_target(project: Project, args: argparse.Namespace) -> None:
    target: Path = args.file
    if target.is_dir() or not target.name:
        raise UsageError(f"{target} is a folder; name a file in it")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {target.parent}")
    beside = project.settings.store_file
    if any(_is_same(target, beside.with_name(beside.name + tail)) for tail in ("", "-wal", "-shm")):
        raise UsageError(f"{target} is the database itself")
    if target.exists() and not args.yes:
        raise Refused(f"{target} is there already", "--yes replaces it")


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def restore(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened
    from penstock.engine.supervisor.lock import ProjectLock

    with opened(args) as project:
        _refuse_on_server(project)
        target = project.settings.store_file
        if not args.file.is_file():
            raise UsageError(f"there is no file {args.file}")
        if _is_same(args.file, target):
            raise UsageError(f"{args.file} is the database itself")
        _refuse_while_working(project)
        confirm(args, f"Put {args.file} in the place of {target}?")
        lock = ProjectLock(target)
        try:
            kept = _put_back(project, args.file)
        finally:
            lock.release()
    was = f"; what it was is in {kept.name}" if kept is not None else ""
    args.out.line(f"{target} is {args.file} now{was}")
    return exits.DONE


def _refuse_while_working(project: Project) -> None:
    from penstock.engine.supervisor.lock import holder_of

    pid = holder_of(project.settings)
    if pid is not None:
        raise Refused(f"another Penstock (pid {pid}) is working on this project", "stop it first")
    try:
        workers = project.connection.workers()
    except StoreError:
        return  # A database that can't be read is what a restore is for.
    left_s = (
        max((each.lease_expires_at for each in workers), default=0.0) - project.connection.now()
    )
    if left_s > 0:
        raise Refused(
            f"a worker still holds a lease for {left_s:.0f} s", "stop it, or wait that long"
        )


def _put_back(project: Project, backup: Path) -> Path | None:
    from penstock.project import default_actor
    from penstock.store.sqlite.backup import restore as put_back

    # Closed, so that what its log holds is in the file that is kept.
    project.close()
    settings = project.settings
    kept = put_back(backup, settings.store_file, project.clock, settings.project)
    project.connection.note_restored(default_actor(), backup.name)
    return kept
