"""`penstock retry`: queue failed jobs again, and only that."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.parser import Commands, add_command, add_json, add_reason, whole_number
from penstock.cli.render.act_results import tell_job
from penstock.cli.render.wording import count
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app import Project

DESCRIPTION = """\
Queue a run's quarantined jobs again, or one quarantined or waiting job, with fresh tries. Nothing else
of the run is touched; a run that had ended opens again."""
EXAMPLES = """\
  penstock retry 12 --failed
  penstock retry --job 345 --reason "the parser is fixed" """


def register(commands: Commands) -> None:
    parser = add_command(commands, "retry", DESCRIPTION, EXAMPLES)
    parser.add_argument("run_id", nargs="?", type=whole_number, metavar="RUN", help="the run")
    parser.add_argument(
        "--failed", action="store_true", help="its quarantined jobs (all that can be retried)"
    )
    parser.add_argument(
        "--job", dest="job_id", type=whole_number, metavar="JOB", help="only this job"
    )
    add_reason(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    if (args.run_id is None) == (args.job_id is None):
        raise UsageError("retry what? RUN --failed or --job JOB", "penstock runs lists the runs")
    with opened(args) as project:
        told = _retry_job(project, args) if args.job_id is not None else _retry_run(project, args)
        if args.json:
            return 0
        args.out.line(told)
        if not project.overview().workers:
            args.out.line("No workers are running. Start one: penstock up")
    return 0


def _retry_run(project: Project, args: argparse.Namespace) -> str:
    queued = project.runs.retry(args.run_id, reason=args.reason)
    if args.json:
        run = project.runs.get(args.run_id)
        answer = {"run": run.id, "source": run.source, "kind": run.kind, "state": run.state}
        args.out.json({**answer, "queued_again": queued, "reason": args.reason})
    return f"{count(queued, 'job')} of run {args.run_id} queued again"


def _retry_job(project: Project, args: argparse.Namespace) -> str:
    project.jobs.retry(args.job_id, reason=args.reason)
    if args.json:
        tell_job(project, args, project.jobs.get(args.job_id), "", is_new=True)
    return f"job {args.job_id} is queued again"
