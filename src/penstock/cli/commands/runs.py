"""`penstock runs`: the newest runs, or one of them in full."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.parser import (
    Commands,
    add_command,
    add_json,
    add_limit,
    add_private,
    whole_number,
)
from penstock.cli.render.run_words import kind_of
from penstock.cli.render.tables import key_column, whole
from penstock.cli.render.wording import duration, local_time
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.runs import RunView

DESCRIPTION = """\
List runs, newest first; or show one run in full: its page and candidate counts, cost, failures and rejects,
linked runs, and latest events."""
EXAMPLES = """\
  penstock runs
  penstock runs --source acme.com --limit 5
  penstock runs --active --json
  penstock runs show 12"""
ABOUT = ("run", "source", key_column("kind", least=11), "state", "began", "took")
# What a run came to, each with the rank of its column.
COUNTED = {
    "pages": 3,
    "candidates": 5,
    "inserted": 2,
    "updated": 2,
    "unchanged": 2,
    "rejected": 4,
    "dropped": 6,
    "skipped": 5,
    "retried": 6,
    "quarantined": 1,
}
COUNTED_COLUMNS = tuple(whole(name, rank) for name, rank in COUNTED.items())


def register(commands: Commands) -> None:
    parser = add_command(commands, "runs", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "words", nargs="*", type=_show_or_run, metavar="RUN", help="one run in full; also: show RUN"
    )
    parser.add_argument("--source", metavar="SOURCE", help="only this source's")
    parser.add_argument("--active", action="store_true", help="only those that have not ended")
    add_limit(parser, 20, "runs")
    add_private(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.commands.workers import stale_words
    from penstock.cli.lookup import opened

    run_id = _run_id(args.words)
    with opened(args) as project:
        if run_id is not None:
            _tell_one(project, args, run_id)
            return 0
        runs = list(project.runs.each(args.source, active=args.active, limit=args.limit))
        for stale in project.workers.stale():
            args.out.note(stale_words(stale))
    if args.json:
        args.out.json_list(run.as_json() for run in runs)
    elif runs:
        args.out.table((*ABOUT, *COUNTED_COLUMNS), (run_line(run) for run in runs))
    else:
        args.out.line("no runs; `penstock run SOURCE` starts one")
    return 0


def run_line(run: RunView) -> tuple[object, ...]:
    """A run as a row of a table."""
    return (
        *(str(run.id), run.source, kind_of(run), run.state),
        *(local_time(run.started_at or run.created_at), duration(run.seconds)),
        *(run.counts[name] for name in COUNTED),
    )


def _tell_one(project: Project, args: argparse.Namespace, run_id: int) -> None:
    from penstock.cli.render.run_report import tell_run

    found = project.runs.detail(run_id)
    if args.json:
        args.out.json(found.as_json())
    else:
        tell_run(project, found, args.out)


def _show_or_run(word: str) -> str | int:
    return word if word == "show" else whole_number(word)


def _run_id(words: list[str | int]) -> int | None:
    """`runs`, `runs 12` and `runs show 12`."""
    match words:
        case []:
            return None
        case [int(run_id)] | ["show", int(run_id)]:
            return run_id
    raise UsageError("show which run? penstock runs show RUN", "penstock runs lists them")
