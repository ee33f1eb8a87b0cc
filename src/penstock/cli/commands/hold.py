"""`penstock hold` and `penstock unhold`: maintenance."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.parser import Commands, add_command, add_json, add_reason, whole_number
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app import Project

HOLD = """\
Maintenance: nothing starts, in the project or in one source, until `penstock unhold`. Running work finishes;
schedules continue, and new work is accepted and waits. Nothing else changes: what is paused stays paused, and
what waits keeps its time. --job holds one queued or waiting job."""
HOLD_EXAMPLES = """\
  penstock hold --reason "moving the database"
  penstock hold acme.com --reason "they asked for a quiet night"
  penstock hold --job 345"""
UNHOLD = "End maintenance. Everything continues where it was."
UNHOLD_EXAMPLES = """\
  penstock unhold
  penstock unhold acme.com --reason "they are done"
  penstock unhold --job 345"""


def register(commands: Commands) -> None:
    holding = add_command(commands, "hold", HOLD, HOLD_EXAMPLES)
    holding.set_defaults(run=hold)
    letting = add_command(commands, "unhold", UNHOLD, UNHOLD_EXAMPLES)
    letting.set_defaults(run=unhold)
    for parser in (holding, letting):
        parser.add_argument(
            "source", nargs="?", metavar="SOURCE", help="only this source (all of them)"
        )
        parser.add_argument(
            "--job", dest="job_id", type=whole_number, metavar="JOB", help="only this job"
        )
        add_reason(parser)
        add_json(parser)


def hold(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened
    from penstock.cli.render.act_results import tell_job, tell_source

    _refuse_both(args)
    with opened(args) as project:
        if args.job_id is not None:
            is_new = project.jobs.hold(args.job_id, reason=args.reason)
            said = "is held" if is_new else "was held already"
            row = project.jobs.get(args.job_id)
            again = f"; penstock unhold --job {row.id}" if is_new else ""
            tell_job(project, args, row, f"job {row.id} {said}{again}", is_new=is_new)
            return 0
        key = _key(project, args)
        is_new = project.sources.hold(key, reason=args.reason)
        said = "is held: nothing of it starts" if is_new else "was held already"
        tell_source(
            project, args, key, "held", f"{key or 'everything'} {said}; {_undo(key)}", is_new=is_new
        )
    return 0


def unhold(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened
    from penstock.cli.render.act_results import tell_job, tell_source

    _refuse_both(args)
    with opened(args) as project:
        if args.job_id is not None:
            is_new = project.jobs.unhold(args.job_id, reason=args.reason)
            row = project.jobs.get(args.job_id)
            said = f"job {row.id} is {row.state} again" if is_new else f"job {row.id} was not held"
            tell_job(project, args, row, said, is_new=is_new)
            return 0
        key = _key(project, args)
        is_new = project.sources.unhold(key, reason=args.reason)
        said = (
            f"{key or 'everything'} is no longer held"
            if is_new
            else f"{key or 'the project'} was not held"
        )
        tell_source(project, args, key, "unheld", said, is_new=is_new)
        _tell_what_is_still_held(project, args)
    return 0


def _refuse_both(args: argparse.Namespace) -> None:
    if args.source is not None and args.job_id is not None:
        raise UsageError(f"{args.command} what? SOURCE or --job JOB, not both")


def _key(project: Project, args: argparse.Namespace) -> str | None:
    return None if args.source is None else project.source(args.source).key


def _undo(key: str | None) -> str:
    return f"penstock unhold {key}" if key else "penstock unhold"


def _tell_what_is_still_held(project: Project, args: argparse.Namespace) -> None:
    for hold in project.sources.holds():
        what = hold.source or "the whole project"
        args.out.note(f"{what} is still held: {_undo(hold.source)}")
