"""`penstock scheduler`: schedules and upkeep, and no work."""

from __future__ import annotations

import argparse

from penstock.cli import exits
from penstock.cli.commands.service import say_stopped, working_on
from penstock.cli.parser import Commands, add_command
from penstock.cli.render.output import Output
from penstock.cli.render.service_log import ServiceLog, add_log_options

DESCRIPTION = """\
Start runs when they are due and apply retention, until stopped. `penstock worker` or `penstock up` elsewhere
runs the jobs. Several schedulers may run: one leads, and if it dies, another takes over within seconds.
Needs a database that hosts share; on SQLite, use `penstock up`."""
EXAMPLES = """\
  penstock scheduler"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "scheduler", DESCRIPTION, EXAMPLES)
    add_log_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened
    from penstock.cli.render.unblocked import unblocked

    out: Output = args.out
    with opened(args, is_validated=True) as project:
        log = ServiceLog(out, args)
        with unblocked(out):
            project.service.schedule(
                on_begin=lambda: log.tell(working_on(project, "scheduling")),
                on_activity=log.line,
                tell=log.tell,
            )
        say_stopped(project, log.tell)
    return exits.DONE
