"""`penstock db migrate`: bring the schema up to date, or show what that would do."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING, Any

from penstock.cli import exits
from penstock.cli.asking import add_yes, confirm
from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command, add_json, add_reason
from penstock.cli.tables import key_column, text, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.store.schema import Applied, Migration, OldWorker, Plan, Schema

DESCRIPTION = """\
Bring the database's schema up to what this Penstock knows. What expands it is safe beside workers of
older versions, and is done by any command; what contracts it is done by this one alone, and refused
while a worker that needs the old schema holds a lease. --plan shows what is missing, what each
migration locks and who is in its way, and changes nothing."""
EXAMPLES = """\
  penstock db migrate --plan
  penstock db migrate
  penstock db migrate --yes --reason "all hosts have 0.2"
"""
COLUMNS = (key_column("migration"), whole("effect"), text("locks", 3), text("in the way", 1))


def register(verbs: Commands) -> None:
    parser = add_command(verbs, "migrate", "bring its schema up to date", DESCRIPTION, EXAMPLES)
    parser.add_argument("--plan", action="store_true", help="only show what would be done")
    add_yes(parser)
    add_reason(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened, require_database

    with opened(args) as project:
        require_database(project)
        name = project.settings.store_name
        with closing(project.open_schema()) as schema:
            plan = schema.plan()
            if args.plan:
                _show(name, plan, schema.schema, args)
            elif plan.pending or plan.leftovers:
                _migrate(name, schema, plan, args)
            else:
                _tell(name, plan.state.number, [], [], args)
    return exits.DONE


def _show(name: str, plan: Plan, known: int, args: argparse.Namespace) -> None:
    out: Output = args.out
    if args.json:
        out.json(_plan_shape(name, plan, known))
        return
    has = f"schema {plan.state.number}" if plan.state.number else "no schema yet"
    out.line(f"{name} has {has}; this Penstock knows {known}")
    if plan.pending:
        out.table(COLUMNS, (_line(each, plan.in_the_way(each)) for each in plan.pending))
    for index in plan.leftovers:
        out.line(f"index {index} was left half made, and will be dropped")
    if not plan.pending and not plan.leftovers:
        out.line("nothing to do")


def _line(migration: Migration, old: Sequence[OldWorker]) -> tuple[str, ...]:
    who = ", ".join(f"{each.id} on {each.host} ({each.version})" for each in old)
    return (migration.name, migration.effect, _locks(migration), who)


def _locks(migration: Migration) -> str:
    return migration.locks or "the whole file, for a moment"


def _plan_shape(name: str, plan: Plan, known: int) -> dict[str, Any]:
    return {
        "store": name,
        "schema": plan.state.number,
        "known": known,
        "pending": [
            {
                "number": each.number,
                "migration": each.name,
                "effect": each.effect,
                "locks": _locks(each),
                "in_the_way": [
                    {"worker": w.id, "host": w.host, "version": w.version, "schema": w.schema}
                    for w in plan.in_the_way(each)
                ],
            }
            for each in plan.pending
        ],
        "leftovers": list(plan.leftovers),
    }


def _migrate(name: str, schema: Schema, plan: Plan, args: argparse.Namespace) -> None:
    from penstock.project import default_actor
    from penstock.store.schema import refuse_in_the_way

    for each in plan.pending:
        refuse_in_the_way(each, plan.in_the_way(each))
    what = ", ".join([*(each.name for each in plan.pending), *plan.leftovers])
    confirm(args, f"Migrate {name} ({what})?")
    applied = []
    for done in schema.migrate(default_actor(), args.reason):
        applied.append(done)
        args.out.note(f"{done.migration.name}: {done.took_s:.3f} s")
    dropped = schema.clear_leftovers()
    _tell(name, schema.plan().state.number, applied, dropped, args)


def _tell(
    name: str,
    number: int,
    applied: Sequence[Applied],
    dropped: Sequence[str],
    args: argparse.Namespace,
) -> None:
    out: Output = args.out
    if not args.json:
        for index in dropped:
            out.line(f"index {index} was left half made, and is dropped")
        out.line(f"{name} has schema {number}{'' if applied or dropped else ': nothing to do'}")
        return
    done = [
        {
            "number": m.number,
            "migration": m.name,
            "effect": m.effect,
            "seconds": round(each.took_s, 3),
        }
        for each in applied
        for m in (each.migration,)
    ]
    out.json({"store": name, "schema": number, "applied": done, "dropped": list(dropped)})
