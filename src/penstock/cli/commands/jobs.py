"""`penstock jobs`: the jobs, or one of them with its error and its events."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.parser import (
    Commands,
    add_command,
    add_json,
    add_limit,
    add_private,
    whole_number,
)
from penstock.cli.render.output import Output
from penstock.cli.render.tables import column, whole
from penstock.cli.render.wording import local_time, shortened, shortened_inside, until

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.jobs import JobView

DESCRIPTION = "List jobs, oldest first; or show one job with its error and events."
EXAMPLES = """\
  penstock jobs --state quarantined
  penstock jobs --run 12 --state waiting --state queued
  penstock jobs --source acme.com --limit 1000 --json
  penstock jobs 345"""
COLUMNS = (
    *("job", column("run", 2), "source", "stage", "state"),
    *(whole("tries", 4), "since", "due", "key", "error"),
)
LONGEST_KEY, LONGEST_ERROR = 200, 200
LATEST = 50


def register(commands: Commands) -> None:
    parser = add_command(commands, "jobs", DESCRIPTION, EXAMPLES)
    parser.add_argument("job_id", nargs="?", type=whole_number, metavar="JOB", help="one job")
    parser.add_argument(
        "--run", dest="run_id", type=whole_number, metavar="RUN", help="only this run's"
    )
    parser.add_argument("--source", metavar="SOURCE", help="only this source's")
    parser.add_argument("--stage", metavar="STAGE", help="only this stage's")
    parser.add_argument(
        "--state",
        action="append",
        default=[],
        metavar="STATE",
        help="only in this state; repeatable",
    )
    add_limit(parser, 50, "jobs")
    add_private(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        if args.job_id is not None:
            _tell_one(project, args)
            return 0
        found = list(
            project.jobs.each(
                run=args.run_id,
                source=args.source,
                stage=args.stage,
                states=args.state,
                limit=args.limit,
            )
        )
        now = project.now()
    if args.json:
        args.out.json_list(job.as_json() for job in found)
    elif found:
        args.out.table(COLUMNS, (_line(job, now) for job in found))
        if len(found) == args.limit:
            args.out.note(f"the first {args.limit}; there may be more: --limit")
    else:
        args.out.line("no such jobs")
    return 0


def _line(row: JobView, now: float) -> tuple[object, ...]:
    return (
        *(str(row.id), str(row.run_id), row.source, row.stage, row.state, row.tries),
        local_time(row.at),
        until(row.due_at, now) if row.due_at is not None else "",
        shortened_inside(row.key, LONGEST_KEY),
        shortened(row.error or "", LONGEST_ERROR),
    )


def _tell_one(project: Project, args: argparse.Namespace) -> None:
    from penstock.cli.commands.events import COLUMNS as EVENT_COLUMNS
    from penstock.cli.commands.events import event_line, latest
    from penstock.cli.render.job_terms import terms_fields

    out: Output = args.out
    row = project.jobs.detail(args.job_id)
    events = latest(project, run=row.run_id, job=row.id, limit=LATEST)
    if args.json:
        out.json({**row.as_json(), "events": [event.as_json() for event in events]})
        return
    terms_told = terms_fields(row.terms, row.tries) if row.terms is not None else []
    out.fields([*_fields(row, project.now()), *terms_told, ("item", row.item)])
    for line in row.traceback.splitlines():
        out.line(f"  {line}")
    if events:
        out.line()
        out.table(EVENT_COLUMNS, (event_line(event) for event in events))
    if row.state == "held":
        out.line()
        out.line(f"unhold it:      penstock unhold --job {row.id}")
    if row.state == "quarantined":
        out.line()
        out.line(f"retry it:       penstock retry --job {row.id}")


def _fields(row: JobView, now: float) -> list[tuple[str, object]]:
    return [
        ("job", row.id),
        ("run", row.run_id),
        ("source", row.source),
        ("stage", f"{row.stage} ({row.unit})"),
        ("key", row.key),
        ("state", row.state),
        ("since", local_time(row.at)),
        ("due", until(row.due_at, now) if row.due_at is not None else ""),
        ("worker", row.worker),
        ("attempts", row.attempt),
        ("tries spent", row.tries),
        ("throttled", row.throttles or ""),
        ("deaths", row.deaths or ""),
        ("error", f"{row.kind}: {row.error}" if row.error else ""),
    ]
