"""`penstock worker`: one more host that works; schedules are another's business."""

from __future__ import annotations

import argparse

from penstock.cli import exits
from penstock.cli.commands.service import add_workers, say_stopped, working_on
from penstock.cli.parser import Commands, add_command
from penstock.cli.render.output import Output
from penstock.cli.render.service_log import ServiceLog, add_log_options

DESCRIPTION = """\
Run jobs until stopped; schedules and retention are left to a `penstock scheduler` or `penstock up` elsewhere.
Needs a database that hosts share; on SQLite, use `penstock up`. SIGTERM or Ctrl-C drains, a second signal
stops at once."""
EXAMPLES = """\
  penstock worker
  penstock worker --workers 4   four worker processes on this host"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "worker", DESCRIPTION, EXAMPLES)
    add_workers(parser)
    add_log_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened
    from penstock.cli.render.unblocked import unblocked

    out: Output = args.out
    with opened(args, is_validated=True) as project:
        log = ServiceLog(out, args)
        with unblocked(out):
            project.service.work(
                workers=args.workers,
                on_begin=lambda: log.tell(working_on(project, "working on")),
                tell=log.tell,
            )
        say_stopped(project, log.tell)
    return exits.DONE
