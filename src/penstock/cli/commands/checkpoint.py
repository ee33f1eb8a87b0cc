"""`penstock checkpoint rewind`: move a checkpoint back, the one way that is not forwards."""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.cli.commands.checkpoints import cursor_words
from penstock.cli.confirmation import add_confirm, confirm
from penstock.cli.parser import (
    Commands,
    add_command,
    add_json,
    add_private,
    add_reason,
    whole_number,
)
from penstock.cli.render.wording import count

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.checkpoints import RewindView

DESCRIPTION = (
    "Move a checkpoint by hand. Runs move checkpoints forward; only this command moves one back."
)
REWIND = """\
Move a checkpoint of a source back, so that the next run fetches again what came after it: to a given cursor,
to where a run left it, or to where it was at a time. Prints what would be fetched again, and asks. Refused
while a run of the source is active (it could move the checkpoint), for a cursor that is empty or of another
type, and for one further forward (what lies between would be skipped). --force allows these."""
EXAMPLES = """\
  penstock checkpoint rewind prices AAPL --to 2024-06-01 --dry-run
  penstock checkpoint rewind prices AAPL --to-run 12 --reason "wrong prices since then"
  penstock checkpoint rewind inbox default --to-time 2d --yes"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "checkpoint", DESCRIPTION, EXAMPLES)
    acts = parser.add_subparsers(dest="act", metavar="ACT", required=True)
    rewind = acts.add_parser(
        "rewind", help="move one back", description=REWIND, epilog=f"examples:\n{EXAMPLES}"
    )
    rewind.add_argument("source", metavar="SOURCE", help="the source")
    rewind.add_argument("partition", metavar="PARTITION", help="the partition; usually `default`")
    target = rewind.add_mutually_exclusive_group(required=True)
    target.add_argument("--to", metavar="CURSOR", help="JSON, or plain text")
    target.add_argument(
        "--to-run", type=whole_number, metavar="RUN", help="its position after this run"
    )
    target.add_argument(
        "--to-time", metavar="T", help="its position at a time: 2d, or 2026-11-15T08:00Z"
    )
    rewind.add_argument(
        "--dry-run", action="store_true", help="only print what would be fetched again"
    )
    rewind.add_argument(
        "--force",
        action="store_true",
        help="allow while a run is active, forwards, or to an empty cursor",
    )
    add_private(rewind)
    add_json(rewind)
    add_confirm(rewind)
    add_reason(rewind)
    rewind.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        act = partial(
            project.checkpoints.rewind,
            args.source,
            args.partition,
            **_target(project, args),
            force=args.force,
            reason=args.reason,
        )
        seen = act(dry_run=True)
        if not args.dry_run:
            confirm(args, f"{_preview(args, seen)}. Go on?", "checkpoints.rewind")
            seen = act()
    if args.json:
        args.out.json(seen.as_json())
    elif args.dry_run:
        args.out.line(_preview(args, seen))
    else:
        name = f"{args.partition} of {args.source}"
        args.out.line(f"{name} went {_way(seen)}; the next run will {_again(seen)}")
    return 0


def _target(project: Project, args: argparse.Namespace) -> dict[str, Any]:
    if args.to is not None:
        return {"to": _cursor(args.to, project.checkpoints.get(args.source, args.partition).cursor)}
    if args.to_run is not None:
        return {"to_run": args.to_run}
    from penstock.app.moments import moment

    return {"to_time": moment("--to-time", args.to_time, project.now())}


def _preview(args: argparse.Namespace, seen: RewindView) -> str:
    return f"{args.partition} of {args.source} would go {_way(seen)}; would {_again(seen)}"


def _way(seen: RewindView) -> str:
    return f"from {cursor_words(seen.start)} to {cursor_words(seen.to)}"


def _again(seen: RewindView) -> str:
    if seen.moves and not seen.units:
        # A step that keeps to its cursor alone: nobody has counted what it fetched.
        return f"fetch again what {count(seen.moves, 'move')} of it brought"
    # Pages are of all partitions of the source, and a step may need only some of them.
    most = "" if seen.is_exact else "up to "
    return f"fetch {most}{count(seen.units, 'unit')} again"


def _cursor(text: str, old: Any) -> Any:
    """As JSON, where it is; but 20240601 in the place of a text is one."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(old, str) and not isinstance(found, str) else found
