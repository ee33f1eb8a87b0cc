"""`penstock forget`: erase what is stored under one key, for good."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.confirmation import add_confirm, confirm
from penstock.cli.parser import Commands, add_command, add_json, add_reason

if TYPE_CHECKING:
    from penstock.app.views.records import ForgottenView
    from penstock.cli.render.output import Output

DESCRIPTION = """\
Erase everything that is stored under one key of a source: its records with all versions, the pages they came
from (also inside WARC files), jobs, rejects, quarantine entries, log lines, and the key in the journal. It
first shows what it would erase. Neither an undo nor a replay restores it. The journal keeps an event that
says who erased it and why, without the key, and `penstock audit verify` still succeeds. It does not reach
backups, exported files, or old object versions in a bucket."""
EXAMPLES = """\
  penstock forget --source acme.com --key ann@example.com --dry-run
  penstock forget --source acme.com --key ann@example.com --reason "request 2026-17"
  penstock forget --source acme.com --key ann@example.com --yes --json"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "forget", DESCRIPTION, EXAMPLES)
    parser.add_argument("--source", required=True, metavar="SOURCE", help="the source")
    parser.add_argument("--key", required=True, metavar="KEY", help="the key of the record")
    parser.add_argument("--dry-run", action="store_true", help="only print what it would erase")
    add_json(parser)
    add_reason(parser)
    add_confirm(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.records.forget(args.source, args.key, dry_run=True)
        if not args.json:
            _tell(found, args.out)
        if not args.dry_run:
            confirm(args, f"Erase all this of {args.key!r} for good?", "records.forget")
            found = project.records.forget(args.source, args.key, reason=args.reason)
            if not args.json:
                args.out.line("erased")
                if not found.is_scrubbed:
                    args.out.line("free space of the database keeps traces until it is vacuumed")
    if args.json:
        args.out.json(found.as_json())
    return 0


def _tell(found: ForgottenView, out: Output) -> None:
    out.fields(
        [
            ("records", found.records or None),
            ("versions", found.versions or None),
            ("pages", found.snapshots or None),
            ("jobs", found.jobs or None),
            ("rejects", found.rejects or None),
            ("log lines", found.log_lines or None),
            ("events", found.events or None),
            ("other texts", found.texts or None),
        ]
    )
