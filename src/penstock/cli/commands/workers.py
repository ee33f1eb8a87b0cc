"""`penstock workers`: the live workers, their hosts, and the scheduler."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.parser import Commands, add_command, add_json
from penstock.cli.render.tables import key_column, text, whole
from penstock.cli.render.wording import duration, local_time
from penstock.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.app.views.workers import LeaderView, NotLoadedView, StaleWorkerView, WorkerView

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
# So many files are named of those that have changed.
FILES = 3
NOBODY = "none; start one with `penstock up` or `penstock scheduler`"


def register(commands: Commands) -> None:
    parser = add_command(commands, "workers", DESCRIPTION, EXAMPLES)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        now = project.now()
        workers = list(project.workers.each())
        leaders = project.workers.leaders()
    if args.json:
        args.out.json_list(worker.as_json() for worker in workers)
        return 0
    if workers:
        args.out.table(COLUMNS, (_line(worker) for worker in workers))
    else:
        args.out.line("no worker; `penstock up` starts one")
    if any(worker.version != __version__ for worker in workers):
        args.out.line(f"* another version than this one, {__version__}")
    args.out.line(f"scheduler: {scheduler_words(leaders, now)}")
    return 0


def scheduler_words(leaders: Sequence[LeaderView], now: float) -> str:
    leader = next((each for each in leaders if _leads(each, now)), None)
    if leader is None:
        return NOBODY
    host, pid, _ = leader.holder.rsplit("/", 2)
    left = duration(leader.expires_at - now)
    return f"pid {pid} on {host}, term {leader.term}, {left} of it left"


def _leads(leader: LeaderView, now: float) -> bool:
    return leader.name == SCHEDULER and leader.expires_at > now


def stale_words(stale: StaleWorkerView) -> str:
    more = f" and {len(stale.files) - FILES} more" if len(stale.files) > FILES else ""
    files = ", ".join(stale.files[:FILES]) + more
    return f"penstock up, pid {stale.pid}, has an older {files}; restart it or use --reload"


def not_loaded_words(found: NotLoadedView) -> str:
    what = f"step {found.stage!r} of {found.source}" if found.stage else found.source
    return f"no worker that is alive has loaded {what}; its jobs wait: restart penstock up"


def _line(worker: WorkerView) -> tuple[object, ...]:
    return (
        *(worker.host, worker.id, str(worker.pid)),
        worker.version if worker.version == __version__ else f"{worker.version} *",
        f"{worker.running}/{worker.slots}",
        _lease(worker.lease_left_s),
        local_time(worker.started_at),
        worker.admits,
    )


def _lease(left_s: float) -> str:
    return f"{duration(left_s)} left" if left_s > 0 else f"ran out {duration(-left_s)} ago"
