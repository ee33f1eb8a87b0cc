"""`penstock checkpoints`: how far each partition of a source has come."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from penstock.cli.parser import Commands, add_command, add_json, add_limit, add_private
from penstock.cli.render.tables import column, key_column, text, whole
from penstock.cli.render.wording import Shortened, local_time, shortened

if TYPE_CHECKING:
    from penstock.app import Project

DESCRIPTION = """\
The checkpoint of each partition of a source: its cursor, the last durable offset, the run that moved it, and
when. --history lists the moves of one checkpoint: moved by a run, refused because the cursor would have gone
back or been empty, or rewound by an operator."""
EXAMPLES = """\
  penstock checkpoints prices
  penstock checkpoints prices --history AAPL --limit 20
  penstock checkpoints prices --json"""
COLUMNS = (
    *(key_column("partition"), key_column("cursor"), text("offset", 4), column("run", 1), "at"),
    whole("moves", 6),
)
HISTORY = (
    *(whole("number"), whole("act"), key_column("cursor"), text("offset", 4), column("run", 1)),
    *("at", text("by", 6), "reason"),
)
LONGEST_CURSOR = 60


def register(commands: Commands) -> None:
    parser = add_command(commands, "checkpoints", DESCRIPTION, EXAMPLES)
    parser.add_argument("source", metavar="SOURCE", help="the source")
    parser.add_argument(
        "--history", metavar="PARTITION", help="moves of this partition's checkpoint"
    )
    add_limit(parser, 50, "moves of the history")
    add_private(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        if args.history is not None:
            _tell_history(project, args)
            return 0
        rows = list(project.checkpoints.each(args.source))
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif rows:
        shown = [
            (
                *(row.partition, short_cursor(row.cursor), short_cursor(row.last_offset)),
                *(str(row.run_id), local_time(row.at), row.moves),
            )
            for row in rows
        ]
        args.out.table(COLUMNS, shown)
    else:
        args.out.line("no checkpoints; a step sets one with ctx.checkpoint(cursor)")
    return 0


def _tell_history(project: Project, args: argparse.Namespace) -> None:
    moves = project.checkpoints.each_move(args.source, args.history, args.limit)
    if args.json:
        args.out.json_list(move.as_json() for move in moves)
        return
    shown = [
        (
            *(move.number, move.act, short_cursor(move.cursor), short_cursor(move.last_offset)),
            *(str(move.run_id), local_time(move.at), move.actor, move.reason),
        )
        for move in moves
    ]
    args.out.table(HISTORY, shown)


def short_cursor(cursor: Any) -> Shortened:
    """A cursor in a cell of a table."""
    return shortened(cursor_words(cursor), LONGEST_CURSOR)


def cursor_words(cursor: Any) -> str:
    """A cursor as it was written, on one line."""
    return "" if cursor is None else json.dumps(cursor, ensure_ascii=False)
