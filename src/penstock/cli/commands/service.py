"""What `up`, `worker` and `scheduler` have in common: each works until it is stopped."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from penstock.cli.parser import whole_number
from penstock.cli.render.output import Output
from penstock.cli.render.wording import count
from penstock.errors import StoreError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.progress import RunReport

Show: TypeAlias = "Callable[[list[RunReport]], None]"


@contextmanager
def showing_progress(out: Output) -> Iterator[tuple[Show, Callable[[str], None]]]:
    """How runs are shown while they go on, and how something is said beside that; neither ever waits."""
    from rich.console import Console

    from penstock.cli.render.progress import LineProgress, LiveProgress
    from penstock.cli.render.service_log import RunLog
    from penstock.cli.render.unblocked import unblocked

    if out.logs_json:
        with unblocked(out):
            yield RunLog(out).show, out.note
        return
    is_terminal = out.stderr.isatty()
    with unblocked(out):
        console = Console(
            file=out.stderr, markup=False, highlight=False, emoji=False, soft_wrap=not is_terminal
        )
        with LiveProgress(console) if is_terminal else LineProgress(console) as progress:
            yield progress.show, lambda text: console.print(out.tidy(text))


def add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        type=whole_number,
        metavar="N",
        help="worker processes on this host (worker.count); more than its cores do not help",
    )


def working_on(project: Project, doing: str) -> str:
    """The first line that is said: what is done, on what."""
    settings = project.settings
    place = f" at {settings.store_name}" if settings.is_on_postgres else ""
    sources = count(len(settings.sources), "source")
    return f"{doing} {settings.project}{place}, {sources}; Ctrl-C stops"


def say_stopped(project: Project, tell: Callable[[str], None]) -> None:
    try:
        left = project.overview()
    except StoreError:
        tell("stopped")
    else:
        tell(f"stopped; {count(left.queued + left.waiting, 'job')} left in the queue")
