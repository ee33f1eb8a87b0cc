"""`penstock db grants`: the SQL for a role that works and owns nothing."""

from __future__ import annotations

import argparse

from penstock.cli import exits
from penstock.cli.parser import Commands, add_json, add_verb
from penstock.cli.render.output import Output

DESCRIPTION = """\
Print the SQL that lets a role work on the project's schema in Postgres, and nothing more: it can neither
change nor drop a table. Run it as the owner of the schema. Nothing is changed by printing it. New versions
of Penstock that bring migrations need `penstock db migrate` as the owner once."""
EXAMPLES = """\
  penstock db grants penstock_worker
  penstock db grants penstock_worker | psql --dbname shop"""


def register(verbs: Commands) -> None:
    parser = add_verb(verbs, "grants", "SQL for a role with few rights", DESCRIPTION, EXAMPLES)
    parser.add_argument("role", metavar="ROLE", help="a role of the Postgres server")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        statements = project.store.grants(args.role)
    _tell(args.out, statements, args.json)
    return exits.DONE


def _tell(out: Output, statements: list[str], is_json: bool) -> None:
    if is_json:
        out.json_list(statements)
        return
    for each in statements:
        out.line(each)
