"""`penstock logs`: what the steps of a run or a job printed and logged."""

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
from penstock.cli.render.wording import local_time
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.logs import LogLineView

DESCRIPTION = """\
What the steps of a run or a job printed and logged (`logging`, INFO and above), the newest lines last. Up to
200 lines or 32 kB per attempt are kept, for `retention.logs`; secrets are masked. --follow shows new lines
until Ctrl-C or until the run or job has ended; --json then prints one object per line."""
EXAMPLES = """\
  penstock logs 12            of run 12
  penstock logs --job 345     of one job, all its attempts
  penstock logs 12 --follow
  penstock logs 12 --json"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "logs", DESCRIPTION, EXAMPLES)
    parser.add_argument("run_id", nargs="?", type=whole_number, metavar="RUN", help="the run")
    parser.add_argument(
        "--job", dest="job_id", type=whole_number, metavar="JOB", help="only of this job"
    )
    parser.add_argument(
        "--follow", action="store_true", help="continue until it has ended, or Ctrl-C"
    )
    add_limit(parser, 500, "lines")
    add_private(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    if (args.run_id is None) == (args.job_id is None):
        raise UsageError(
            "logs of what? A RUN, or --job JOB", "penstock runs and penstock jobs list them"
        )
    wanted = {"run": args.run_id, "job": args.job_id, "limit": args.limit}
    with opened(args) as project:
        if args.follow:
            _follow(project, args, wanted)
            return 0
        lines = list(project.logs.each(**wanted))[::-1]
    if args.json:
        args.out.json_list(line.as_json() for line in lines)
    elif lines:
        for line in lines:
            args.out.line(_line(line))
    else:
        args.out.note("no output, or it is older than retention.logs")
    return 0


def _follow(project: Project, args: argparse.Namespace, wanted: dict[str, Any]) -> None:
    for line in project.logs.follow(on_wait=args.out.stdout.flush, **wanted):
        if args.json:
            args.out.json(line.as_json())
        else:
            args.out.line(_line(line))


def _line(row: LogLineView) -> str:
    who = f"{row.source or ''} run {row.run_id} job {row.job_id} attempt {row.attempt}"
    return f"{local_time(row.at)}  {who}  {row.level}  {row.text}"
