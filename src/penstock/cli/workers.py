"""`penstock workers`: who works."""

from __future__ import annotations

import argparse

from penstock.cli.parser import Commands, add_command, add_json
from penstock.cli.wording import duration, local_time

DESCRIPTION = """\
The workers that hold a lease, and what they have running. A worker whose lease has run out is
buried by the next one that works, and its jobs run again."""
EXAMPLES = """\
  penstock workers
  penstock workers --json"""
COLUMNS = ("worker", "host", "pid", "version", "started", "running", "lease")


def register(commands: Commands) -> None:
    parser = add_command(commands, "workers", "who works", DESCRIPTION, EXAMPLES)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened
    from penstock.cli.shapes import worker_shape

    with opened(args) as project:
        rows, now = project.store.workers(), project.clock.now()
    if args.json:
        args.out.json_list(worker_shape(row, now) for row in rows)
    elif rows:
        args.out.table(
            COLUMNS,
            [
                (
                    *(row.id, row.host, str(row.pid), row.version, local_time(row.started_at)),
                    *(row.running, _lease(row.lease_expires_at - now)),
                )
                for row in rows
            ],
        )
    else:
        args.out.line("no worker; `penstock up` starts one")
    return 0


def _lease(left_s: float) -> str:
    return f"{duration(left_s)} left" if left_s > 0 else f"ran out {duration(-left_s)} ago"
