"""`penstock jobs`: the jobs, or one of them with its error and its events."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command, add_json, add_limit, one_of, whole_number
from penstock.cli.tables import column, whole
from penstock.cli.wording import local_time, shortened, shortened_inside, until

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.store.rows import JobRow
    from penstock.store.store import JobFilter

DESCRIPTION = "Jobs, the oldest first; or one job with its error and what happened to it."
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
    parser = add_command(commands, "jobs", "the jobs, or one of them", DESCRIPTION, EXAMPLES)
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
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened
    from penstock.cli.shapes import job_shape

    with opened(args) as project:
        if args.job_id is not None:
            _tell_one(project, args)
            return 0
        rows = project.store.jobs(_wanted(project, args))
        now = project.store.now()
    if args.json:
        args.out.json_list(job_shape(row) for row in rows)
    elif rows:
        args.out.table(COLUMNS, (_line(row, now) for row in rows))
        if len(rows) == args.limit:
            args.out.note(f"the first {args.limit}; there may be more: --limit")
    else:
        args.out.line("no such jobs")
    return 0


def _wanted(project: Project, args: argparse.Namespace) -> JobFilter:
    from penstock.cli.opening import source_key
    from penstock.jobs.job import JobState
    from penstock.store.store import JobFilter

    if args.run_id is not None:
        project.require_run(args.run_id)
    return JobFilter(
        run_id=args.run_id,
        source=source_key(project, args.source),
        stage=args.stage,
        states=tuple(JobState(one_of("state", list(JobState), each)) for each in args.state),
        limit=args.limit,
    )


def _line(row: JobRow, now: float) -> tuple[object, ...]:
    return (
        *(str(row.id), str(row.run_id), row.source, row.stage, row.state, row.tries),
        local_time(row.at),
        until(row.due_at, now) if row.due_at is not None else "",
        shortened_inside(row.key, LONGEST_KEY),
        shortened(row.error or "", LONGEST_ERROR),
    )


def _tell_one(project: Project, args: argparse.Namespace) -> None:
    from penstock.cli.events import COLUMNS as EVENT_COLUMNS
    from penstock.cli.events import event_line
    from penstock.cli.job_terms import terms_of
    from penstock.cli.shapes import event_shape, job_shape

    out: Output = args.out
    row = project.require_job(args.job_id)
    detail, terms = project.store.job_detail(row.id), terms_of(project, row)
    events = project.store.events(run_id=row.run_id, job_id=row.id, limit=LATEST)
    if args.json:
        more = {"parent": detail.parent_id, "item": detail.item, "traceback": detail.traceback}
        shape = {**job_shape(row), **more, "terms": None if terms is None else terms.shape()}
        out.json({**shape, "events": [event_shape(event) for event in events]})
        return
    terms_told = terms.fields(row.tries) if terms is not None else []
    out.fields([*_fields(row, project.store.now()), *terms_told, ("item", detail.item)])
    for line in detail.traceback.splitlines():
        out.line(f"  {line}")
    if events:
        out.line()
        out.table(EVENT_COLUMNS, (event_line(event) for event in events))
    if row.state == "held":
        out.line()
        out.line(f"let it go:      penstock unhold --job {row.id}")
    if row.state == "quarantined":
        out.line()
        out.line(f"send it back:   penstock retry --job {row.id}")


def _fields(row: JobRow, now: float) -> list[tuple[str, object]]:
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
