"""`penstock checkpoint rewind`: move a checkpoint back, the one way that is not forwards."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.cli.asking import add_yes, confirm
from penstock.cli.checkpoints import cursor_words, require_partition, source_id_of
from penstock.cli.parser import Commands, add_command, add_json, add_reason, whole_number
from penstock.cli.wording import count, local_time
from penstock.errors import Refused, UsageError

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.store.checkpoints import CheckpointMove

DESCRIPTION = "Change a checkpoint by hand. Runs move them on; only this moves one back."
REWIND = """\
Move a checkpoint of a source back, so that the next run fetches again what came after it. Says first what
that would be, and asks. To a cursor of your own, or to where it was when a run had left it, or at a time.
Refused while a run of the source goes on, which might move it at once, for a cursor that is empty or of
another kind, and for one that is further on, which would leave out what lies between: --force does it."""
EXAMPLES = """\
  penstock checkpoint rewind prices AAPL --to 2024-06-01 --dry-run
  penstock checkpoint rewind prices AAPL --to-run 12 --reason "wrong prices since then"
  penstock checkpoint rewind inbox default --to-time 2d --yes"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "checkpoint", "move a checkpoint back", DESCRIPTION, EXAMPLES)
    acts = parser.add_subparsers(dest="act", metavar="ACT", required=True)
    rewind = acts.add_parser(
        "rewind", help="move one back", description=REWIND, epilog=f"examples:\n{EXAMPLES}"
    )
    rewind.add_argument("source", metavar="SOURCE", help="whose")
    rewind.add_argument("partition", metavar="PARTITION", help="which; `default` is the usual name")
    target = rewind.add_mutually_exclusive_group(required=True)
    target.add_argument("--to", metavar="CURSOR", help="JSON, or a text as it is")
    target.add_argument(
        "--to-run", type=whole_number, metavar="RUN", help="where it was when this run had left it"
    )
    target.add_argument(
        "--to-time", metavar="T", help="where it was then: 2d, or 2026-11-15T08:00Z"
    )
    rewind.add_argument(
        "--dry-run", action="store_true", help="only say what would be fetched again"
    )
    rewind.add_argument(
        "--force", action="store_true", help="although a run goes on, or forward, or to nothing"
    )
    add_json(rewind)
    add_yes(rewind)
    add_reason(rewind)
    rewind.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened
    from penstock.project import default_actor

    with opened(args) as project:
        source_id = source_id_of(project, args.source)
        require_partition(project, source_id, args.source, args.partition)
        [current] = [
            row
            for row in project.store.checkpoint_rows(source_id)
            if row.partition == args.partition
        ]
        history = project.store.checkpoint_history(source_id, args.partition)
        target, since = _target(project, args, history, current.cursor)
        if target.cursor == current.cursor:
            raise Refused(f"{args.partition} of {args.source} is there already")
        if not args.force:
            _refuse_unfit(current.cursor, target.cursor)
        units = project.store.units_since(source_id, args.partition, since)
        way = f"from {cursor_words(current.cursor)} to {cursor_words(target.cursor)}"
        moves = _moves_since(history, since)
        # Pages are of all partitions of the source, and a step may need only some of them.
        most = "" if project.store.has_windows(source_id, args.partition) else "up to "
        again = f"fetch {most}{count(units, 'unit')} again"
        if moves and not units:
            # A step that keeps to its cursor alone: nobody has counted what it fetched.
            again = f"fetch again what {count(moves, 'move')} of it brought"
        words = f"{args.partition} of {args.source} would go {way}; would {again}"
        if not args.dry_run:
            confirm(args, f"{words}. Go on?")
            project.store.rewind_checkpoint(
                source_id,
                args.partition,
                target,
                actor=default_actor(),
                reason=args.reason,
                is_forced=args.force,
            )
        if args.json:
            args.out.json(
                {
                    "partition": args.partition,
                    "from": current.cursor,
                    "to": target.cursor,
                    "units": units,
                    "moves": moves,
                    "is_done": not args.dry_run,
                }
            )
        else:
            done = f"{args.partition} of {args.source} went {way}; the next run will {again}"
            args.out.line(words if args.dry_run else done)
    return 0


def _moves_since(history: Sequence[CheckpointMove], since: float) -> int:
    return sum(each.act == "moved" and each.at > since for each in history)


def _refuse_unfit(old: Any, new: Any) -> None:
    from penstock.jobs.cursor import compared, is_empty, refusal

    why, way = refusal(old, new), compared(old, new)
    if why and (is_empty(new) or way is None):
        raise Refused(
            f"{cursor_words(new)} does not take the place of {cursor_words(old)}: {why}",
            "--force moves the checkpoint all the same",
        )
    if way == 1:
        raise Refused(
            f"{cursor_words(new)} is further on than {cursor_words(old)}: what lies between would never be"
            " fetched",
            "a backfill fetches it; --force moves the checkpoint all the same",
        )


def _target(
    project: Project, args: argparse.Namespace, history: Sequence[CheckpointMove], old: Any
) -> tuple[CheckpointMove, float]:
    """Where it is to go, and since when it has been further on than that."""
    from penstock.cli.moments import moment
    from penstock.store.checkpoints import CheckpointMove, as_it_was, last_upto

    now = project.store.now()
    if args.to is not None:
        cursor = _cursor(args.to, old)
        run_id = history[0].run_id if history else 0
        last = last_upto(history, cursor)
        since = 0.0 if last is None else _since(project, history, last)
        return CheckpointMove(0, cursor, None, run_id, now, "", "rewound"), since
    if args.to_run is not None:
        project.require_run(args.to_run)
        found = as_it_was(history, run_id=args.to_run)
        when = f"run {args.to_run} moved it"
    else:
        at = moment("--to-time", args.to_time, now)
        found = as_it_was(history, at=at)
        when = f"it was there at {local_time(at)}"
    if found is None:
        raise UsageError(
            f"the history does not say that {when}",
            f"penstock checkpoints {args.source} --history {args.partition}",
        )
    return found, _since(project, history, found)


def _since(project: Project, history: Sequence[CheckpointMove], move: CheckpointMove) -> float:
    """From when on what was fetched came after this move: what its run fetched belongs to it, unless
    the same run has moved the checkpoint on."""
    newer = [each for each in history if each.number > move.number and each.act == "moved"]
    run = project.store.run(move.run_id)
    if run is None or run.finished_at is None or (newer and newer[-1].run_id == move.run_id):
        return move.at
    return max(move.at, run.finished_at)


def _cursor(text: str, old: Any) -> Any:
    """As JSON, where it is; but 20240601 in the place of a text is one."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(old, str) and not isinstance(found, str) else found
