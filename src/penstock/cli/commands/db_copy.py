"""`penstock db copy`: move a project from one database to another."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.parser import Commands, add_json, add_reason, add_verb
from penstock.cli.render.output import Output
from penstock.cli.render.tables import key_column, whole
from penstock.cli.render.wording import count

if TYPE_CHECKING:
    from penstock.app.store_copy import Step
    from penstock.app.views.store import CopyView

DESCRIPTION = """\
Move a project from a SQLite file to Postgres, or back: every run, job, record, checkpoint and line of
the journal. Refused while anything works on either side, and where the target holds a project already.
After an interruption, the same command continues; until it is done, no other command opens the target. At the
end both sides are compared, row by row. The origin is not changed."""
EXAMPLES = """\
  penstock db copy sqlite:penstock.db postgresql://penstock@db.example.com/shop
  penstock db copy postgresql://penstock@db.example.com/shop sqlite:penstock.db --json

A password is best left out of the line: PGPASSWORD or ~/.pgpass is read as by psql."""
TELL_EVERY_S = 1.0


def register(verbs: Commands) -> None:
    parser = add_verb(verbs, "copy", "move the project to another", DESCRIPTION, EXAMPLES)
    parser.add_argument("origin", metavar="FROM", help="sqlite:FILE or postgresql://…")
    parser.add_argument("target", metavar="TO", help="the same, of the other kind")
    parser.add_argument(
        "--restart", action="store_true", help="discard an unfinished copy and start over"
    )
    add_reason(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.app.store_copy import copy_store, secrets_of

    out: Output = args.out
    out.secrets = secrets_of(args.origin, args.target)
    copied = copy_store(
        args.origin,
        args.target,
        folder=_folder(args),
        restart=args.restart,
        on_progress=_progress(out, time.monotonic),
        reason=args.reason,
    )
    _tell(copied, args)
    return exits.DONE


def _folder(args: argparse.Namespace) -> Path:
    """What a file's name is relative to: the project that was named, or else this folder."""
    place = Path(args.project or ".").absolute()
    return place.parent if place.is_file() else place


def _progress(out: Output, monotonic: Callable[[], float]) -> Callable[[Step], None]:
    """A line now and then, and none for what is done at once."""
    told_at = monotonic()

    def tell(step: Step) -> None:
        nonlocal told_at
        if monotonic() - told_at >= TELL_EVERY_S:
            told_at = monotonic()
            of = f" of {step.of:,}" if step.of is not None and step.of != step.rows else ""
            out.note(f"{step.act} {step.table}: {step.rows:,}{of}")

    return tell


def _tell(copied: CopyView, args: argparse.Namespace) -> None:
    out: Output = args.out
    if args.json:
        out.json(copied.as_json())
        return
    out.table(
        (whole("table"), whole("rows"), key_column("sha256, equal on both sides", 1)),
        [(each.table, each.rows, each.sha256) for each in copied.tables],
    )
    out.line(f"{copied.target} holds {count(copied.rows, 'row')}, the same as {copied.origin}")
    if copied.released:
        out.line(f"{count(copied.released, 'job')} had a worker that is gone, and run again there")
    out.line("snapshots are files, and stay where they are: `snapshots:` must name a place for all")
    out.line("to work there, put its address into `store:` in penstock.yaml")
