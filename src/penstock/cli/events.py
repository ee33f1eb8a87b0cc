"""`penstock events`: the journal, what changed, who did it, why."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command, add_json, add_limit, whole_number
from penstock.cli.tables import column, text, whole
from penstock.cli.wording import local_time, shortened

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.store.rows import EventRow

DESCRIPTION = """\
The newest lines of the journal, oldest of them first. With --follow, what comes next is shown as it
happens, until Ctrl-C; then --json prints one object per line instead of one array."""
EXAMPLES = """\
  penstock events --run 12
  penstock events --job 345
  penstock events --kind breaker --source acme.com
  penstock events --source acme.com --follow
  penstock events --where data.host=acme.com
  penstock events --kind job.retry_scheduled --where worker=host-1-a1b2c3
  penstock events --limit 1000 --json"""
COLUMNS = (
    *("event", column("at", 1), "what", column("source", 3), column("run", 1), "job"),
    *(whole("attempt", 6), text("who", 5), text("detail", 1, 20)),
)
FOLLOW_S = 0.2
PAGE = 500
LONGEST_DETAIL = 300


def register(commands: Commands) -> None:
    parser = add_command(commands, "events", "the journal", DESCRIPTION, EXAMPLES)
    parser.add_argument("--source", metavar="SOURCE", help="only this source's")
    parser.add_argument(
        "--run", dest="run_id", type=whole_number, metavar="RUN", help="only this run's"
    )
    parser.add_argument(
        "--job", dest="job_id", type=whole_number, metavar="JOB", help="only this job's"
    )
    parser.add_argument(
        "--kind",
        metavar="KIND",
        help="only of this kind: job.retry_scheduled, or all that begins with job",
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="only where this field has this value: actor, worker, attempt, data.NAME, …; may be repeated",
    )
    parser.add_argument("--follow", action="store_true", help="continue until Ctrl-C")
    add_limit(parser, 50, "events")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened, source_key
    from penstock.cli.shapes import event_shape
    from penstock.journal.condition import condition

    args.where = [condition(text) for text in args.where]
    with opened(args) as project:
        args.source = source_key(project, args.source)
        _refuse_unknown(project, args)
        if args.follow:
            _follow(project, args)
        rows = project.connection.events(
            args.source, args.run_id, args.job_id, None, args.limit, args.kind, args.where
        )
    if args.json:
        args.out.json_list(event_shape(row) for row in rows)
    elif rows:
        args.out.table(COLUMNS, (event_line(row) for row in rows))
    else:
        args.out.line("no events")
    return 0


def event_line(row: EventRow) -> tuple[object, ...]:
    """An event as a row of a table under COLUMNS."""
    return (
        *(str(row.id), local_time(row.at), row.kind, row.source),
        *(_text(row.run_id), _text(row.job_id), _text(row.attempt)),
        *(row.actor, shortened(row.detail, LONGEST_DETAIL)),
    )


def _follow(project: Project, args: argparse.Namespace) -> None:
    """Print, then wait for more; ends only when it is interrupted or its reader goes away."""
    tell, store = _teller(args), project.connection
    wanted = (args.source, args.run_id, args.job_id)
    rows, cursor = store.follow(None, *wanted, args.limit, args.kind, args.where)
    while True:
        for row in rows:
            tell(row)
        args.out.stdout.flush()
        if len(rows) < PAGE:
            _wait_for_more(project)
        rows, cursor = store.follow(cursor, *wanted, PAGE, args.kind, args.where)


def _wait_for_more(project: Project) -> None:
    time.sleep(FOLLOW_S)
    # A file tells whether anybody has written; a server is asked for what was.
    while not project.connection.is_shared and not project.connection.has_changed():
        time.sleep(FOLLOW_S)


def _teller(args: argparse.Namespace) -> Callable[[EventRow], None]:
    from penstock.cli.shapes import event_shape

    if args.json:
        return lambda row: args.out.json(event_shape(row))
    return lambda row: args.out.line(_one_line(row, args.out))


def _one_line(row: EventRow, out: Output) -> str:
    named = (("run", row.run_id), ("job", row.job_id), ("attempt", row.attempt))
    numbers = [f"{noun} {number}" for noun, number in named if number is not None]
    words = [local_time(row.at), row.kind, row.source or "", *numbers, row.actor, row.detail]
    return "  ".join(out.short(word, LONGEST_DETAIL) for word in words if word)


def _refuse_unknown(project: Project, args: argparse.Namespace) -> None:
    if args.run_id is not None:
        project.require_run(args.run_id)
    if args.job_id is not None:
        project.require_job(args.job_id)


def _text(number: int | None) -> str:
    return "" if number is None else str(number)
