"""`penstock logs`: what the steps of a run or a job printed and logged."""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.cli.parser import Commands, add_command, add_json, add_limit, whole_number
from penstock.cli.wording import local_time
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.store.logs import LogRow

DESCRIPTION = """\
What the steps of a run or a job printed and logged (`logging`, INFO and above), the newest lines last. Up to
200 lines or 32 kB per attempt are kept, for `retention.logs`; secrets are masked. --follow shows new lines
until Ctrl-C or until the run or job has ended; --json then prints one object per line."""
EXAMPLES = """\
  penstock logs 12            of run 12
  penstock logs --job 345     of one job, all its attempts
  penstock logs 12 --follow
  penstock logs 12 --json"""
FOLLOW_S = 0.3
PAGE = 1000
# Hosts that write at the same time may be seen in another order than they were numbered in.
OVERLAP = 1000


def register(commands: Commands) -> None:
    parser = add_command(commands, "logs", "what steps printed and logged", DESCRIPTION, EXAMPLES)
    parser.add_argument("run_id", nargs="?", type=whole_number, metavar="RUN", help="the run")
    parser.add_argument(
        "--job", dest="job_id", type=whole_number, metavar="JOB", help="only of this job"
    )
    parser.add_argument(
        "--follow", action="store_true", help="continue until it has ended, or Ctrl-C"
    )
    add_limit(parser, 500, "lines")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened

    if (args.run_id is None) == (args.job_id is None):
        raise UsageError(
            "logs of what? A RUN, or --job JOB", "penstock runs and penstock jobs list them"
        )
    with opened(args) as project:
        if args.run_id is not None:
            project.require_run(args.run_id)
        else:
            project.require_job(args.job_id)
        read = _reader(project, args)
        if args.follow:
            _follow(project, args, read)
            return 0
        rows = read(0, args.limit)
    _tell(args, rows)
    return 0


def _reader(project: Project, args: argparse.Namespace) -> Callable[[int, int], list[LogRow]]:
    store = project.connection
    if args.run_id is not None:
        return lambda after, limit: store.log_of_run(args.run_id, after, limit)
    return lambda after, limit: store.log_of_job(args.job_id, after, limit)


def _tell(args: argparse.Namespace, rows: list[LogRow]) -> None:
    if args.json:
        args.out.json_list(_shape(row) for row in rows)
    elif rows:
        for row in rows:
            args.out.line(_line(row))
    else:
        args.out.note("no output, or it is older than retention.logs")


def _follow(
    project: Project, args: argparse.Namespace, read: Callable[[int, int], list[LogRow]]
) -> None:
    seen: deque[int] = deque(maxlen=2 * OVERLAP)
    rows = read(0, args.limit)
    while True:
        for row in rows:
            seen.append(row.id)
            if args.json:
                args.out.json(_shape(row))
            else:
                args.out.line(_line(row))
        args.out.stdout.flush()
        is_over = _has_ended(project, args)
        time.sleep(FOLLOW_S)
        newest = max(seen, default=0)
        known = set(seen)
        rows = [row for row in read(max(0, newest - OVERLAP), PAGE) if row.id not in known]
        if is_over and not rows:
            return


def _has_ended(project: Project, args: argparse.Namespace) -> bool:
    if args.run_id is not None:
        return project.require_run(args.run_id).is_ended
    return project.require_run(project.require_job(args.job_id).run_id).is_ended


def _shape(row: LogRow) -> dict[str, Any]:
    return {
        "line": row.id,
        "at": row.at,
        "source": row.source,
        "run": row.run_id,
        "job": row.job_id,
        "attempt": row.attempt,
        "level": row.level,
        "text": row.text,
    }


def _line(row: LogRow) -> str:
    who = f"{row.source or ''} run {row.run_id} job {row.job_id} attempt {row.attempt}"
    return f"{local_time(row.at)}  {who}  {row.level}  {row.text}"
