"""`penstock up`: work until stopped, or until there is nothing left to do."""

from __future__ import annotations

import argparse
import os
import sys

from penstock.cli import exits
from penstock.cli.commands.service import add_workers, say_stopped, working_on
from penstock.cli.commands.web import HOST, PORT, add_web_options, port_number
from penstock.cli.parser import Commands, add_command
from penstock.cli.render.output import Output
from penstock.cli.render.service_log import ServiceLog, add_log_options

DESCRIPTION = """\
Run workers and the scheduler until stopped. SIGTERM or Ctrl-C drains: running work finishes or goes back to
the queue, and no attempt is lost. A second signal stops at once.

--until-idle exits when nothing is running, queued or due soon: for cron, CI, and after a crash. The exit code
is then 0 whatever the results of the runs; the last line counts them.

It prints a line when a run starts or ends, a breaker opens or closes, a cause is escalated, a job is
quarantined, a worker is lost or a schedule was missed. On many hosts, the leader prints these lines.

With --web it also serves the API and the dashboard, in a separate process that ends with it, as
`penstock web` does; the other --web options are those of `penstock web`.

On Postgres, run it on as many hosts as you like: they share the work, one of them schedules, and if a host
dies, the others take over its jobs."""
EXAMPLES = """\
  penstock up
  penstock up --until-idle
  penstock up --reload      drain and start again when a step or penstock.yaml was changed
  penstock up --log-format json   for a log collector
  penstock up --web         with the API and the dashboard on http://127.0.0.1:8787
  penstock up --workers 4   four worker processes on this host (Postgres)"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "up", DESCRIPTION, EXAMPLES)
    parser.add_argument("--until-idle", action="store_true", help="end when nothing is left to do")
    parser.add_argument(
        "--reload",
        action="store_true",
        help="for development: load code and penstock.yaml again when they change",
    )
    add_workers(parser)
    add_log_options(parser)
    _add_web(parser)
    parser.set_defaults(run=run)


def _add_web(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--web", action="store_true", help="serve the API and the dashboard too")
    parser.add_argument(
        "--web-host", default=HOST, metavar="HOST", help=f"where to listen ({HOST})"
    )
    parser.add_argument(
        "--web-port", type=port_number, default=PORT, metavar="PORT", help=f"({PORT})"
    )
    add_web_options(parser, "--web-")


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened
    from penstock.cli.render.unblocked import unblocked
    from penstock.cli.web_process import web_beside

    out: Output = args.out
    with opened(args, is_validated=True) as project:
        log = ServiceLog(out, args)
        with unblocked(out), web_beside(project, args, log.tell):
            end = project.service.up(
                until_idle=args.until_idle,
                workers=args.workers,
                reload=args.reload,
                on_begin=lambda: log.tell(working_on(project, "working on")),
                on_activity=log.line,
                tell=log.tell,
            )
        if end.reason == "stopped":
            say_stopped(project, log.tell)
    if end.reason == "code_changed":
        _start_again()
    if end.reason == "idle":
        log.last(end.ended)
        return exits.DONE
    # Without --until-idle, being stopped is how it ends.
    return exits.INTERRUPTED if args.until_idle else exits.DONE


def _start_again() -> None:
    """Become the same command anew, in the same process: Python can't unload what it has imported."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606  ourselves
