"""`penstock runs`: the newest runs, or one of them in full."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command, add_json, add_limit, whole_number
from penstock.cli.wording import duration, local_time

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.store.store import RunRow

DESCRIPTION = "The newest runs first; or one run with its counts and its latest events."
EXAMPLES = """\
  penstock runs
  penstock runs --source acme.com --limit 5
  penstock runs --active --json
  penstock runs 12"""
ABOUT = ("run", "source", "kind", "state", "began", "took")
COUNTED = ("pages", "candidates", "accepted", "rejected", "skipped", "retried", "quarantined")
LATEST = 10


def register(commands: Commands) -> None:
    parser = add_command(commands, "runs", "the newest runs, or one of them", DESCRIPTION, EXAMPLES)
    parser.add_argument("run_id", nargs="?", type=whole_number, metavar="RUN", help="one run")
    parser.add_argument("--source", metavar="SOURCE", help="only this source's")
    parser.add_argument("--active", action="store_true", help="only those that have not ended")
    add_limit(parser, 20, "runs")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened, source_key
    from penstock.cli.shapes import run_shape

    with opened(args) as project:
        now = project.store.now()
        if args.run_id is not None:
            _tell_one(project, args, now)
            return 0
        rows = project.store.runs(source_key(project, args.source), args.active, args.limit)
    if args.json:
        args.out.json_list(run_shape(row, now) for row in rows)
    elif rows:
        args.out.table((*ABOUT, *COUNTED), [run_line(row, now) for row in rows])
    else:
        args.out.line("no runs; `penstock run SOURCE` starts one")
    return 0


def run_line(row: RunRow, now: float) -> tuple[object, ...]:
    """A run as a row of a table."""
    from penstock.cli.shapes import run_counts, seconds_of

    counts = run_counts(row)
    return (
        *(str(row.id), row.source, row.kind, row.state),
        *(local_time(row.started_at or row.created_at), duration(seconds_of(row, now))),
        *(counts[name] for name in COUNTED),
    )


def _tell_one(project: Project, args: argparse.Namespace, now: float) -> None:
    from penstock.cli.shapes import run_shape

    out: Output = args.out
    row = project.require_run(args.run_id)
    shape = run_shape(row, now)
    if args.json:
        out.json(shape)
        return
    out.fields(
        [
            ("run", row.id),
            ("source", row.source),
            ("kind", row.kind),
            ("state", row.state),
            ("started by", row.actor),
            ("reason", row.reason),
            ("queued", local_time(row.created_at)),
            ("began", local_time(row.started_at)),
            ("ended", local_time(row.finished_at)),
            ("took", duration(shape["seconds"])),
            ("pipeline", row.pipeline_version),
            *((name, number) for name, number in shape["counts"].items() if number),
        ]
    )
    _tell_events(project, row, out)
    if row.quarantined:
        out.line()
        out.line(f"what failed:    penstock jobs --run {row.id} --state quarantined")
        out.line(f"send it back:   penstock retry {row.id} --failed")


def _tell_events(project: Project, row: RunRow, out: Output) -> None:
    from penstock.cli.events import COLUMNS as EVENT_COLUMNS
    from penstock.cli.events import event_line

    events = project.store.events(run_id=row.id, limit=LATEST)
    if events:
        out.line()
        out.table(EVENT_COLUMNS, [event_line(event) for event in events])
