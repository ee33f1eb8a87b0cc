"""`penstock cancel`: end a run or a job for good."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.confirmation import add_confirm, confirm
from penstock.cli.parser import Commands, add_command, add_json, add_reason, whole_number
from penstock.cli.render.act_results import tell_job, tell_run
from penstock.cli.render.output import Output
from penstock.cli.render.wording import count
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app import Project

DESCRIPTION = """\
End a run, or one job of it, for good. Running attempts are fenced off: what they still write changes
nothing. What was saved before stays."""
EXAMPLES = """\
  penstock cancel 12
  penstock cancel 12 --yes --reason "wrong sitemap"
  penstock cancel --job 345"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "cancel", DESCRIPTION, EXAMPLES)
    parser.add_argument("run_id", nargs="?", type=whole_number, metavar="RUN", help="the run")
    parser.add_argument(
        "--job", dest="job_id", type=whole_number, metavar="JOB", help="only this job"
    )
    add_reason(parser)
    add_confirm(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    if (args.run_id is None) == (args.job_id is None):
        raise UsageError("cancel what? A RUN or --job JOB", "penstock runs --active lists the runs")
    with opened(args) as project:
        if args.job_id is not None:
            _cancel_job(project, args)
        else:
            _cancel_run(project, args)
    return 0


def _cancel_run(project: Project, args: argparse.Namespace) -> None:
    out: Output = args.out
    run = project.runs.get(args.run_id)
    still_open = count(run.open_jobs, "open job")
    if not run.is_ended:  # one that has ended is refused below
        confirm(
            args, f"Cancel run {run.id} of {run.source} ({run.state}, {still_open})?", "runs.cancel"
        )
    swept = 0
    for batch in project.runs.cancel(run.id, reason=args.reason):
        swept += batch
        if batch and out.stderr.isatty():
            out.note(f"{count(swept, 'job')} cancelled")
    said = f"run {run.id} of {run.source} is cancelled, with {still_open}"
    tell_run(project, args, project.runs.get(run.id), said, is_new=True)


def _cancel_job(project: Project, args: argparse.Namespace) -> None:
    job = project.jobs.get(args.job_id)
    confirm(
        args,
        f"Cancel job {job.id} of {job.source} ({job.stage} {job.key}, {job.state})?",
        "jobs.cancel",
    )
    project.jobs.cancel(job.id, reason=args.reason)
    tell_job(project, args, project.jobs.get(job.id), f"job {job.id} is cancelled", is_new=True)
