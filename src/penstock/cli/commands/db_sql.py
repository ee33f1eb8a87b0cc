"""`penstock db sql`: views that other programs read, and update to have something done."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.confirmation import add_confirm, confirm
from penstock.cli.parser import Commands, add_json, add_limit, add_reason, add_verb
from penstock.cli.render.tables import column, key_column, whole
from penstock.cli.render.wording import count, local_time, shortened

if TYPE_CHECKING:
    from penstock.app.views.sql import SqlInterfaceView, SqlRequestView

DESCRIPTION = """\
Views for SQL clients: ingestion_jobs, source_site_schemas, supplier_references and organizations. INSERT into
ingestion_jobs starts a run, UPDATE of its status blocks, retries or cancels one. `penstock up` performs what
clients ask for within a second or two. See docs/sql.md for every column."""
EXAMPLES = """\
  penstock db sql install
  penstock db sql install --schema public
  penstock db sql check
  penstock db sql requests"""
INSTALL = """\
Make the views, or make them again as this version has them. On Postgres they are in the schema
penstock_sql, and the roles penstock_reader and penstock_operator may use them. In a SQLite file they are
beside the tables."""
REMOVE = """\
Drop the views. What clients have asked for is performed all the same. Roles are not dropped: other databases
of the server may use them."""
CHECK = """\
Whether the views are there, of this version, and show the sources as penstock.yaml has them. Ends with 5
if not."""
REQUESTS = "What clients have asked for, the newest first, and what became of it."
PERFORM = "Perform what clients have asked for now: for projects where no `penstock up` is running."
QUERY = """\
Print what one statement reads from the views, such as those of docs/sql.md. Nothing can be written. On
SQLite, now() - interval '30 days' and jsonb_array_length are understood, too. It shows what the user in
`store:` may read, private sources and all."""
WAITING = (
    "{} from SQL clients wait for a process that leads: penstock up, or penstock db sql perform"
)
SHOWN = 50
LONGEST_VALUE = 60
PATIENCE_S = 10.0
LONGEST_ERROR = 100
COLUMNS = (
    *("request", key_column("verb", least=12), "state", column("source", 1), "run"),
    *(whole("asked", 3), column("by", 2), "error"),
)


def register(verbs: Commands) -> None:
    parser = add_verb(verbs, "sql", "views for SQL clients", DESCRIPTION, EXAMPLES)
    inner = parser.add_subparsers(dest="act", metavar="ACT", title="acts", required=True)
    installing = add_verb(
        inner, "install", "make the views", INSTALL, "  penstock db sql install --schema public"
    )
    installing.add_argument("--schema", metavar="NAME", help="where the views are, on Postgres")
    add_reason(installing)
    installing.set_defaults(run=install)
    removing = add_verb(inner, "remove", "drop them", REMOVE, "  penstock db sql remove --yes")
    add_confirm(removing)
    add_reason(removing)
    removing.set_defaults(run=remove)
    checking = add_verb(inner, "check", "are they current?", CHECK, "  penstock db sql check")
    checking.set_defaults(run=check)
    listing = add_verb(
        inner, "requests", "what clients asked for", REQUESTS, "  penstock db sql requests --json"
    )
    add_limit(listing, SHOWN, "requests")
    listing.set_defaults(run=requests)
    asking = add_verb(
        inner, "query", "read by a statement", QUERY, '  penstock db sql query "SELECT …"'
    )
    asking.add_argument(
        "statement", metavar="STATEMENT", help="SQL that reads; - reads it from stdin"
    )
    add_limit(asking, SHOWN, "rows")
    asking.set_defaults(run=query)
    performing = add_verb(inner, "perform", "do it now", PERFORM, "  penstock db sql perform")
    performing.set_defaults(run=perform)
    for each in (installing, removing, checking, listing, asking, performing):
        add_json(each)


def install(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.sql.install(args.schema, reason=args.reason)
    _tell(found, args)
    return exits.DONE


def remove(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.sql.remove(dry_run=True)
        if found.schema is not None:
            confirm(args, f"Drop the views in {found.schema}?", "sql.remove")
            project.sql.remove(reason=args.reason)
    if args.json:
        args.out.json(found.as_json())
    elif found.schema is None:
        args.out.line("There are no views to drop")
    else:
        args.out.line(f"The views in {found.schema} are dropped")
    return exits.DONE


def check(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.sql.check()
    _tell(found, args)
    return exits.DONE if found.is_sound else exits.STORE


def _tell(found: SqlInterfaceView, args: argparse.Namespace) -> None:
    if args.json:
        args.out.json(found.as_json())
        return
    for problem in found.problems:
        args.out.line(f"{problem}; penstock db sql install repairs it")
    if found.schema is None:
        args.out.line("There are no views for SQL clients; penstock db sql install makes them")
    else:
        args.out.line(f"{found.schema}: views over {count(found.sources, 'source')}")
    for note in found.notes:
        args.out.note(note)


def requests(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        rows, now = list(project.sql.each(limit=args.limit)), project.now()
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif rows:
        args.out.table(COLUMNS, map(_line, rows))
    else:
        args.out.line("No SQL client has asked for anything yet")
    waiting = sum(_waits(row, now) for row in rows)
    if waiting:
        args.out.note(WAITING.format(count(waiting, "request")))
    return exits.DONE


def _waits(row: SqlRequestView, now: float) -> bool:
    """Whether a process that leads would have performed it."""
    return (
        row.state in ("open", "taken") and max(row.asked_at, row.due_at or 0.0) < now - PATIENCE_S
    )


def _line(row: SqlRequestView) -> tuple[object, ...]:
    run = "" if row.run is None else str(row.run)
    about = (str(row.id), row.verb, row.state, row.source, run)
    return (*about, local_time(row.asked_at), row.actor, shortened(row.error or "", LONGEST_ERROR))


def query(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    statement = sys.stdin.read() if args.statement == "-" else args.statement
    with opened(args) as project:
        found = project.sql.query(statement, limit=args.limit)
    if args.json:
        args.out.json_list(dict(zip(found.columns, row, strict=True)) for row in found.rows)
    elif found.columns:
        args.out.table(found.columns, [[_shown(value) for value in row] for row in found.rows])
        if not found.rows:
            args.out.line("No rows")
    if found.has_more:
        args.out.note(f"there are more rows: --limit, or LIMIT ({count(args.limit, 'row')} shown)")
    return exits.DONE


def _shown(value: object) -> object:
    if value is None:
        return ""
    text = json.dumps(value) if isinstance(value, list | dict | bool) else str(value)
    return shortened(text, LONGEST_VALUE)


def perform(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        done = project.sql.perform()
    if args.json:
        args.out.json({"performed": done})
    else:
        args.out.line(f"{count(done, 'request')} performed")
    return exits.DONE
