"""`penstock up`: work until stopped, or until there is nothing left to do."""

from __future__ import annotations

import argparse

from penstock.cli import exits
from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command
from penstock.cli.wording import count

DESCRIPTION = """\
Run workers and the scheduler until stopped. SIGTERM or Ctrl-C drains: running work finishes or is put
back, no attempt is spent; a second one stops at once. With --until-idle it ends by itself when nothing
is running, queued or due soon: for cron, for CI, and after a crash."""
EXAMPLES = """\
  penstock up
  penstock up --until-idle"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "up", "work until stopped", DESCRIPTION, EXAMPLES)
    parser.add_argument("--until-idle", action="store_true", help="end when nothing is left to do")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened
    from penstock.engine.foreground import run_forever
    from penstock.engine.lock import holder_of

    out: Output = args.out
    with opened(args, is_validated=True) as project:
        if holder_of(project.settings.store_file) is None:
            sources = count(len(project.settings.sources), "source")
            out.note(f"working on {project.settings.project}, {sources}; Ctrl-C stops")
        is_whole = run_forever(project, until_idle=args.until_idle, tell=out.note)
        left = project.store.overview()
    if is_whole:
        out.note("idle")
        return exits.DONE
    out.note(f"stopped; {left.queued + left.waiting:,} jobs stay queued")
    # Without --until-idle, being stopped is how it ends.
    return exits.INTERRUPTED if args.until_idle else exits.DONE
