"""`penstock up`: work until stopped, or until there is nothing left to do."""

from __future__ import annotations

import argparse

from penstock.cli import exits
from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command
from penstock.cli.service_log import ServiceLog, add_log_options
from penstock.cli.working import add_workers, how_many, say_stopped, working_on

DESCRIPTION = """\
Run workers and the scheduler until stopped. SIGTERM or Ctrl-C drains: running work finishes or is put
back, no attempt is spent; a second one stops at once. With --until-idle it ends by itself when nothing
is running, queued or due soon: for cron, for CI, and after a crash; its exit code is 0 then, whatever the
runs came to, and its last line counts them.

It prints a line when a run starts or ends, a breaker opens or closes, a cause is escalated, a job is
quarantined, a worker is lost or a schedule was missed; on many hosts the one that schedules does.

On Postgres it may run on as many hosts as you like: they share the work, one of them schedules, and
when one is lost the others take over its jobs."""
EXAMPLES = """\
  penstock up
  penstock up --until-idle
  penstock up --reload      drain and start again when a step or penstock.yaml was changed
  penstock up --log-format json   for a log collector
  penstock up --workers 4   four worker processes on this host (Postgres)"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "up", "run workers and the scheduler", DESCRIPTION, EXAMPLES)
    parser.add_argument("--until-idle", action="store_true", help="end when nothing is left to do")
    parser.add_argument(
        "--reload",
        action="store_true",
        help="for development: load code and penstock.yaml again when they change",
    )
    add_workers(parser)
    add_log_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened
    from penstock.cli.unblocked import unblocked
    from penstock.engine.foreground import run_forever
    from penstock.engine.supervisor.lock import holder_of
    from penstock.engine.supervisor.reloading import CodeChanged, start_again

    out: Output = args.out
    with opened(args, is_validated=True) as project:
        workers = how_many(project.settings, args.workers)
        log = ServiceLog(out, args)
        activity = log.activity()
        if holder_of(project.settings) is None:
            log.tell(working_on(project, "working on"))
        try:
            with unblocked(out):
                is_whole = run_forever(
                    project,
                    tell=log.tell,
                    activity=activity,
                    until_idle=args.until_idle,
                    workers=workers,
                    reloads=args.reload,
                )
        except CodeChanged:
            start_again()
            raise
        if not is_whole:
            say_stopped(project, log.tell)
    if is_whole:
        log.last(activity)
        return exits.DONE
    # Without --until-idle, being stopped is how it ends.
    return exits.INTERRUPTED if args.until_idle else exits.DONE
