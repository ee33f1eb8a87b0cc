"""`penstock start`: start a draft run, or let workers have a prepared one."""

from __future__ import annotations

import argparse

from penstock.cli.parser import Commands, add_command, add_json, add_reason, whole_number

DESCRIPTION = """\
Start a draft: a run that was created with `penstock run SOURCE --draft` and waits for this command.
With --hand-over, let workers perform what is left of a run that was prepared for drains."""
EXAMPLES = """\
  penstock run acme.com --draft
  penstock start 12 --reason "checked with Ann"
  penstock start 14 --hand-over --reason "its orchestrator is gone" """


def register(commands: Commands) -> None:
    parser = add_command(commands, "start", DESCRIPTION, EXAMPLES)
    parser.add_argument("run_id", type=whole_number, metavar="RUN", help="the draft")
    parser.add_argument(
        "--hand-over", action="store_true", help="a prepared run: workers perform it from now on"
    )
    add_reason(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened
    from penstock.cli.render.act_results import tell_run

    with opened(args) as project:
        begin = project.runs.hand_over if args.hand_over else project.runs.begin
        begun = begin(args.run_id, reason=args.reason)
        said = f"run {begun.id} of {begun.source} is {begun.state}"
        tell_run(project, args, begun, said, is_new=True)
    return 0
