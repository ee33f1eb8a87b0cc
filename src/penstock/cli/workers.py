"""`penstock workers`: who works, on which host, and who schedules."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.parser import Commands, add_command, add_json
from penstock.cli.tables import key_column, text, whole
from penstock.cli.wording import duration, local_time
from penstock.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.store.rows import LeaderRow, WorkerRow

DESCRIPTION = """\
The workers that hold a lease, by host, and what they are running; then, which host schedules. When a
worker's lease expires, another host removes it and its jobs run again. A worker that accepts only suspects
runs jobs that two workers have died with, one at a time."""
EXAMPLES = """\
  penstock workers
  penstock workers --json"""
COLUMNS = (
    *(
        key_column("host", least=10),
        key_column("worker", least=12),
        whole("pid"),
        whole("version", 4),
    ),
    *(whole("load", 1), whole("lease", 2), whole("started", 5), text("admits", 3)),
)
SCHEDULER = "scheduler"
NOBODY = "nobody; `penstock up` or `penstock scheduler` does"


def register(commands: Commands) -> None:
    parser = add_command(commands, "workers", "running workers, by host", DESCRIPTION, EXAMPLES)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened
    from penstock.cli.shapes import worker_shape

    with opened(args) as project:
        now = project.connection.now()
        rows = by_host(project.connection.workers())
        leaders = project.connection.leaders()
    if args.json:
        args.out.json_list(worker_shape(row, now) for row in rows)
        return 0
    if rows:
        args.out.table(COLUMNS, (_line(row, now) for row in rows))
    else:
        args.out.line("no worker; `penstock up` starts one")
    if any(row.version != __version__ for row in rows):
        args.out.line(f"* another version than this one, {__version__}")
    args.out.line(f"scheduler: {scheduler_words(leaders, now)}")
    return 0


def by_host(rows: Sequence[WorkerRow]) -> list[WorkerRow]:
    return sorted(rows, key=lambda row: (row.host, row.started_at, row.id))


def scheduler_of(leaders: Sequence[LeaderRow], now: float) -> LeaderRow | None:
    """Who schedules now; None if nobody's term lasts."""
    found = (row for row in leaders if row.name == SCHEDULER and row.expires_at > now)
    return next(found, None)


def scheduler_words(leaders: Sequence[LeaderRow], now: float) -> str:
    leader = scheduler_of(leaders, now)
    if leader is None:
        return NOBODY
    host, pid, _ = leader.holder.rsplit("/", 2)
    left = duration(leader.expires_at - now)
    return f"pid {pid} on {host}, term {leader.term}, {left} of it left"


def _line(row: WorkerRow, now: float) -> tuple[object, ...]:
    return (
        *(row.host, row.id, str(row.pid)),
        row.version if row.version == __version__ else f"{row.version} *",
        f"{row.running}/{row.slots}",
        _lease(row.lease_expires_at - now),
        local_time(row.started_at),
        row.admits,
    )


def _lease(left_s: float) -> str:
    return f"{duration(left_s)} left" if left_s > 0 else f"ran out {duration(-left_s)} ago"
