"""`penstock db`: the database itself: check it, back it up, put a backup back, migrate it, move it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from penstock.cli import exits
from penstock.cli.commands import db_copy, db_grants, db_migrate, db_rename, db_sql
from penstock.cli.confirmation import add_confirm, confirm
from penstock.cli.parser import Commands, add_command, add_json, add_reason, add_verb
from penstock.cli.render.output import Output
from penstock.cli.render.wording import count

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
Copy the database while work continues. The copy is verified, and gets its name only when it is complete."""
SHOW = """\
Show where the database is, how large it is and which schema it has. It is neither migrated nor worked on,
so this also answers for a database that other commands refuse."""
RESTORE = """\
Verify a backup and put it in the place of the database. Refused while anything works on the project. The
current file is kept beside it as FILE.before-restore; earlier ones are not overwritten."""
STEP = 0.1
PAGES_A_NOTE = 10_000


def register(commands: Commands) -> None:
    parser = add_command(
        commands,
        "db",
        DESCRIPTION,
        EXAMPLES,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=True)
    showing = add_verb(verbs, "show", "where it is, and its size", SHOW, "  penstock db show")
    add_json(showing)
    showing.set_defaults(run=show)
    checking = add_verb(verbs, "check", "is it sound?", CHECK, "  penstock db check")
    depth = checking.add_mutually_exclusive_group()
    depth.add_argument("--quick", action="store_true", help="only check that stored pages exist")
    depth.add_argument(
        "--full", action="store_true", help="read every stored page, in a bucket too"
    )
    add_json(checking)
    checking.set_defaults(run=check)
    saving = add_verb(
        verbs, "backup", "copy it, while in use", BACKUP, "  penstock db backup monday.db"
    )
    saving.set_defaults(run=backup)
    restoring = add_verb(
        verbs, "restore", "put a copy back", RESTORE, "  penstock db restore monday.db"
    )
    restoring.set_defaults(run=restore)
    for each in (saving, restoring):
        each.add_argument("file", type=Path, metavar="FILE", help="the backup")
        add_confirm(each)
    add_reason(restoring)
    db_migrate.register(verbs)
    db_copy.register(verbs)
    db_rename.register(verbs)
    db_grants.register(verbs)
    db_sql.register(verbs)


def show(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.store.view()
    if args.json:
        args.out.json(found.as_json())
    else:
        args.out.line(f"{found.store}: {count(found.bytes, 'byte')}, schema {found.schema}")
    return exits.DONE


def check(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    out: Output = args.out
    reads_pages = True if args.full else False if args.quick else None
    with opened(args) as project:
        found = project.store.check(reads_pages=reads_pages, on_progress=_pages_noted(out))
    if args.json:
        out.json_list(found.problems)
    else:
        for problem in found.problems:
            out.line(problem)
        verdict = "sound" if found.is_sound else count(len(found.problems), "problem")
        out.line(f"{found.store}: {verdict}")
    return exits.DONE if found.is_sound else exits.STORE


def _pages_noted(out: Output) -> Callable[[int], None]:
    """A note now and then; the check of a small project says nothing."""
    shown = 0

    def note(pages: int) -> None:
        nonlocal shown
        if pages - shown >= PAGES_A_NOTE:
            shown = pages
            out.note(f"{count(pages, 'stored page')} checked")

    return note


def backup(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    out: Output = args.out
    with opened(args) as project:
        made = project.store.backup(args.file, replace=args.yes, on_progress=_parts_noted(out))
    out.line(f"{made.file}: {count(made.bytes, 'byte')}, checked")
    return exits.DONE


def _parts_noted(out: Output) -> Callable[[float], None]:
    shown = 0.0

    def note(done: float) -> None:
        nonlocal shown
        if done - shown >= STEP:
            shown = done
            out.note(f"{done:.0%}")

    return note


def restore(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        planned = project.store.restore(args.file, dry_run=True)
        confirm(args, f"Put {planned.file} in the place of {planned.store}?", "store.restore")
        done = project.store.restore(args.file, reason=args.reason)
    was = f"; what it was is in {done.kept}" if done.kept is not None else ""
    args.out.line(f"{done.store} is {done.file} now{was}")
    return exits.DONE
