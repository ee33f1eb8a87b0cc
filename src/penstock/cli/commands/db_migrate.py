"""`penstock db migrate`: bring the schema up to date, or show what that would do."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.confirmation import add_yes, confirm
from penstock.cli.parser import Commands, add_json, add_reason, add_verb
from penstock.cli.render.output import Output
from penstock.cli.render.tables import key_column, text, whole

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.store import (
        AppliedView,
        MigratedView,
        MigrationPlanView,
        MigrationView,
    )

DESCRIPTION = """\
Bring the database's schema up to date with this version. Migrations that expand it are safe beside workers
of older versions, and any command applies them. Migrations that contract it are applied only by this command,
and refused while a worker that needs the old schema holds a lease. --plan shows what is missing, what each
migration locks and which workers block it, and changes nothing."""
EXAMPLES = """\
  penstock db migrate --plan
  penstock db migrate
  penstock db migrate --yes --reason "all hosts have 0.2"
"""
COLUMNS = (key_column("migration"), whole("effect"), text("locks", 3), text("in the way", 1))


def register(verbs: Commands) -> None:
    parser = add_verb(verbs, "migrate", "bring its schema up to date", DESCRIPTION, EXAMPLES)
    parser.add_argument("--plan", action="store_true", help="only show what would be done")
    add_yes(parser)
    add_reason(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        plan = project.store.plan()
        if args.plan:
            _show(plan, args)
        else:
            _migrate(project, plan, args)
    return exits.DONE


def _show(plan: MigrationPlanView, args: argparse.Namespace) -> None:
    out: Output = args.out
    if args.json:
        out.json(plan.as_json())
        return
    has = f"schema {plan.schema}" if plan.schema else "no schema yet"
    out.line(f"{plan.store} has {has}; this Penstock knows {plan.known}")
    if plan.pending:
        out.table(COLUMNS, (_line(each) for each in plan.pending))
    for index in plan.leftovers:
        out.line(f"index {index} is incomplete, and will be dropped")
    if plan.is_empty:
        out.line("nothing to do")


def _line(migration: MigrationView) -> tuple[str, ...]:
    old = (f"{each.id} on {each.host} ({each.version})" for each in migration.in_the_way)
    return (migration.name, migration.effect, migration.locks, ", ".join(old))


def _migrate(project: Project, plan: MigrationPlanView, args: argparse.Namespace) -> None:
    if not plan.is_empty:
        project.store.migrate(dry_run=True)
        what = ", ".join([*(each.name for each in plan.pending), *plan.leftovers])
        confirm(args, f"Migrate {plan.store} ({what})?")

    def note(done: AppliedView) -> None:
        args.out.note(f"{done.name}: {done.seconds:.3f} s")

    _tell(project.store.migrate(on_progress=note, reason=args.reason), args)


def _tell(done: MigratedView, args: argparse.Namespace) -> None:
    out: Output = args.out
    if args.json:
        out.json(done.as_json())
        return
    for index in done.dropped:
        out.line(f"index {index} was incomplete, and is dropped")
    is_changed = done.applied or done.dropped
    out.line(f"{done.store} has schema {done.schema}{'' if is_changed else ': nothing to do'}")
