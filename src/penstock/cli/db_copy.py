"""`penstock db copy`: move a project from one database to another."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command, add_json
from penstock.cli.tables import key_column, whole
from penstock.cli.wording import count
from penstock.errors import ConfigError, Refused, StoreError, UsageError

if TYPE_CHECKING:
    from penstock.store.copying import Copied, Step

DESCRIPTION = """\
Move a project from a SQLite file to Postgres, or back: every run, job, record, checkpoint and line of
the journal. Refused while anything works on either side, and where the target holds a project already.
Interrupted or killed, the same command goes on where it was; until it has ended nobody can work on the
target. At the end both sides are compared, row by row. The origin is left as it is."""
EXAMPLES = """\
  penstock db copy sqlite:penstock.db postgresql://penstock@db.example.com/shop
  penstock db copy postgresql://penstock@db.example.com/shop sqlite:penstock.db --json

A password is best left out of the line: PGPASSWORD or ~/.pgpass is read as by psql."""
TELL_EVERY_S = 1.0


def register(verbs: Commands) -> None:
    parser = add_command(verbs, "copy", "move the project to another", DESCRIPTION, EXAMPLES)
    parser.add_argument("origin", metavar="FROM", help="sqlite:FILE or postgresql://…")
    parser.add_argument("target", metavar="TO", help="the same, of the other kind")
    parser.add_argument(
        "--restart", action="store_true", help="discard an unfinished copy and start over"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.clock import SystemClock
    from penstock.engine.supervisor.lock import ProjectLock
    from penstock.project import default_actor
    from penstock.settings.address import secrets_in
    from penstock.store.copying import copy_project
    from penstock.store.opening import open_end

    origin_at, target_at = _address("FROM", args.origin), _address("TO", args.target)
    out: Output = args.out
    out.secrets = frozenset(secrets_in(origin_at) | secrets_in(target_at))
    folder, clock = _folder(args), SystemClock()
    _refuse(origin_at, target_at, folder)
    with ExitStack() as until_done:
        ends = []
        for address in (origin_at, target_at):
            file = _file(address, folder)
            if file is not None:
                until_done.enter_context(ProjectLock(file))
            ends.append(until_done.enter_context(closing(open_end(address, folder, clock))))
        origin, target = ends
        tell = _progress(out, clock.monotonic)
        copied = copy_project(origin, target, default_actor(), tell, args.restart)
        _tell(origin.name, target.name, copied, args)
    return exits.DONE


def _address(which: str, text: str) -> str:
    from penstock.settings.address import parse_store

    try:
        return parse_store(text)
    except ConfigError as error:
        raise UsageError(f"{which} {error.message}") from None


def _folder(args: argparse.Namespace) -> Path:
    """What a file's name is relative to: the project that was named, or else this folder."""
    place = Path(args.project or ".").absolute()
    return place.parent if place.is_file() else place


def _file(address: str, folder: Path) -> Path | None:
    from penstock.settings.address import SQLITE

    is_file = address.startswith(SQLITE)
    return folder / address.removeprefix(SQLITE) if is_file else None


def _refuse(origin_at: str, target_at: str, folder: Path) -> None:
    origin, target = _file(origin_at, folder), _file(target_at, folder)
    if origin is not None and target is not None:
        raise Refused(
            "a file is copied to a file by a backup", "penstock db backup FILE, while it is in use"
        )
    if origin is not None and not origin.is_file():
        raise StoreError(f"there is no database at {origin}")
    if target is not None and not target.parent.is_dir():
        raise UsageError(f"there is no folder {target.parent}")


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


def _tell(origin: str, target: str, copied: Copied, args: argparse.Namespace) -> None:
    out: Output = args.out
    if args.json:
        tables = [{"table": t.table, "rows": t.rows, "sha256": t.sha256} for t in copied.tables]
        about = {"rows": copied.rows, "released": copied.released, "is_resumed": copied.is_resumed}
        out.json({"from": origin, "to": target, **about, "tables": tables})
        return
    out.table(
        (whole("table"), whole("rows"), key_column("sha256, equal on both sides", 1)),
        [(each.table, each.rows, each.sha256) for each in copied.tables],
    )
    out.line(f"{target} holds {count(copied.rows, 'row')}, the same as {origin}")
    if copied.released:
        out.line(f"{count(copied.released, 'job')} had a worker that is gone, and run again there")
    out.line("snapshots are files, and stay where they are: `snapshots:` must name a place for all")
    out.line("to work there, put its address into `store:` in penstock.yaml")
