"""`penstock prepare`: make a run that drains perform, for orchestrators that run commands."""

from __future__ import annotations

import argparse

from penstock.cli import exits
from penstock.cli.commands.run import KINDS, param
from penstock.cli.parser import Commands, add_command, add_reason, whole_number
from penstock.errors import UsageError

DESCRIPTION = """\
Make a run that workers leave alone: an orchestrator's tasks perform it with `penstock drain`, one stage each.
Prints the number of the run. With --key, the orchestrator's own name of the run, the same command finds the
same run again."""
EXAMPLES = """\
  penstock prepare acme.com --key "$DAG_RUN_ID"
  penstock prepare acme.com --kind incremental --param category=shoes
  penstock prepare prices --kind backfill --from 2024-01-01 --to 2024-01-31
  penstock drain 12 --stages   its stages, in order"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "prepare", DESCRIPTION, EXAMPLES)
    parser.add_argument("source", metavar="SOURCE", help="the source")
    parser.add_argument(
        "--kind", choices=KINDS, metavar="KIND", help="full, incremental, probe or backfill"
    )
    parser.add_argument("--key", metavar="TEXT", help="the same key finds the same run again")
    parser.add_argument("--from", dest="start", metavar="T", help="backfill: first day or time")
    parser.add_argument("--to", dest="end", metavar="T", help="backfill: last day or time")
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="override a param of the source for this run; VALUE is read as YAML (repeatable)",
    )
    parser.add_argument("--pages", type=whole_number, metavar="N", help="at most N pages")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_reason(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        started = project.runs.prepare(
            args.source,
            args.kind,
            key=args.key,
            between=_between(args),
            params=dict(map(param, args.param)),
            pages=args.pages,
            reason=args.reason,
        )
        if args.json:
            args.out.json(started.as_json())
        elif started.run is not None:
            args.out.line(str(started.run.id))
            if not started.is_new:
                args.out.note(f"run {started.run.id} was prepared before: {started.run.state}")
    return exits.DONE


def _between(args: argparse.Namespace) -> tuple[str, str] | None:
    if (args.start is None) != (args.end is None):
        raise UsageError("a range has a first and a last day", "--from DAY --to DAY")
    return None if args.start is None else (args.start, args.end)
