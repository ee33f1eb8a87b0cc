"""`penstock undo`: bring records back to what they were before a run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.confirmation import add_confirm, confirm
from penstock.cli.parser import (
    Commands,
    add_command,
    add_json,
    add_limit,
    add_private,
    add_reason,
    whole_number,
)
from penstock.cli.render.tables import key_column, whole
from penstock.cli.render.wording import count

if TYPE_CHECKING:
    from penstock.app.views.replays import UndoView
    from penstock.cli.render.output import Output

DESCRIPTION = """\
Bring records back to what they were before a run. What it would do is shown first. Records that later runs
have changed are left alone. No version is lost: what is brought back is a new version, written by a run of
its own, which can be undone too. Checkpoints and pages stay as they are."""
EXAMPLES = """\
  penstock undo 12 --dry-run
  penstock undo 12 --reason "the site showed test prices"
  penstock undo 12 --yes --json"""
SHOWN = 10


def register(commands: Commands) -> None:
    parser = add_command(commands, "undo", DESCRIPTION, EXAMPLES)
    parser.add_argument("run_id", type=whole_number, metavar="RUN", help="the run")
    parser.add_argument("--dry-run", action="store_true", help="only print what it would do")
    add_limit(parser, SHOWN, "records shown")
    add_private(parser)
    add_json(parser)
    add_reason(parser)
    add_confirm(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        report = project.runs.undo(args.run_id, dry_run=True, limit=args.limit)
        if not args.json:
            _tell(report, args.out)
        if report.is_wanted and not args.dry_run:
            confirm(args, f"Undo what run {args.run_id} did to {_many(report)}?", "runs.undo")
            report = project.runs.undo(args.run_id, limit=args.limit, reason=args.reason)
            if not args.json:
                _tell_done(report, args.out)
        if args.json:
            args.out.json(report.as_json())
    return 0


def _many(report: UndoView) -> str:
    return count(report.differences, "record")


def _tell(report: UndoView, out: Output) -> None:
    from penstock.cli.render.diffs import tell_changes

    out.fields(
        [
            ("brought back", report.brought_back),
            ("returned", report.returned or None),
            ("removed", report.removed),
            ("left alone", _left_alone(report)),
        ]
    )
    tell_changes(out, report.first)
    if len(report.first) < report.differences:
        out.line(f"{len(report.first)} of {report.differences:,} records; --limit N shows more")
    if report.first_changed_later:
        out.line()
        rows = [(each.collection, each.key, str(each.run)) for each in report.first_changed_later]
        out.table((key_column("changed later", least=10), "key", whole("by run")), rows)
    if report.is_cut_short:
        out.line("an earlier undo of it was interrupted; this continues it")
    elif not report.differences:
        out.line("nothing to undo")


def _left_alone(report: UndoView) -> str:
    words = []
    if report.changed_later:
        words.append(f"{report.changed_later} changed by later runs")
    if report.no_longer_kept:
        words.append(f"{report.no_longer_kept} whose earlier version is no longer kept")
    return ", ".join(words)


def _tell_done(report: UndoView, out: Output) -> None:
    out.line()
    out.line(
        f"undone: {report.brought_back} brought back, {report.returned} returned, "
        f"{report.removed} removed"
    )
    out.line(f"take that back: penstock undo {report.undone_by}")
