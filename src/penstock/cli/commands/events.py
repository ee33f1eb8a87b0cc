"""`penstock events`: the journal, what changed, who did it, why."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from penstock.cli.parser import (
    Commands,
    add_command,
    add_json,
    add_limit,
    add_private,
    whole_number,
)
from penstock.cli.render.output import Output
from penstock.cli.render.tables import column, text, whole
from penstock.cli.render.wording import local_time, shortened

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.journal import EventView

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
LONGEST_DETAIL = 300


def register(commands: Commands) -> None:
    parser = add_command(commands, "events", DESCRIPTION, EXAMPLES)
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
    add_private(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        if args.follow:
            _follow(project, args)
        events = latest(project, limit=args.limit, **_wanted(args))
    if args.json:
        args.out.json_list(event.as_json() for event in events)
    elif events:
        args.out.table(COLUMNS, (event_line(event) for event in events))
    else:
        args.out.line("no events")
    return 0


def latest(project: Project, *, limit: int, **wanted: Any) -> list[EventView]:
    """The newest events, oldest of them first."""
    return list(project.journal.each(limit=limit, **wanted))[::-1]


def _wanted(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "source": args.source,
        "run": args.run_id,
        "job": args.job_id,
        "kind": args.kind,
        "where": args.where,
    }


def event_line(row: EventView) -> tuple[object, ...]:
    """An event as a row of a table under COLUMNS."""
    return (
        *(str(row.id), local_time(row.at), row.kind, row.source),
        *(_text(row.run_id), _text(row.job_id), _text(row.attempt)),
        *(row.actor, shortened(row.detail, LONGEST_DETAIL)),
    )


def _follow(project: Project, args: argparse.Namespace) -> None:
    """Ends only when it is interrupted or its reader goes away."""
    events = project.journal.follow(
        limit=args.limit, on_wait=args.out.stdout.flush, **_wanted(args)
    )
    for event in events:
        if args.json:
            args.out.json(event.as_json())
        else:
            args.out.line(_one_line(event, args.out))


def _one_line(row: EventView, out: Output) -> str:
    named = (("run", row.run_id), ("job", row.job_id), ("attempt", row.attempt))
    numbers = [f"{noun} {number}" for noun, number in named if number is not None]
    words = [local_time(row.at), row.kind, row.source or "", *numbers, row.actor, row.detail]
    return "  ".join(out.short(word, LONGEST_DETAIL) for word in words if word)


def _text(number: int | None) -> str:
    return "" if number is None else str(number)
