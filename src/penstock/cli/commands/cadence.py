"""`penstock schedules cadence`: which class sources with `cadence: auto` have, and a person's hand."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from penstock.cli.parser import add_json, add_reason, add_verb
from penstock.cli.render.tables import whole
from penstock.cli.render.wording import local_time

if TYPE_CHECKING:
    from penstock.app.views.schedules import CadenceView

DESCRIPTION = """\
Sources with `cadence: auto`: the class of each, since when, and why. --set changes the class of a source,
--undo restores the previous one. Results of later runs may change it again."""
EXAMPLES = """\
  penstock schedules cadence
  penstock schedules cadence acme.com --set low --reason "they publish monthly now"
  penstock schedules cadence acme.com --undo"""
CLASSES = ("low", "medium", "high")
NONE = "no source has a class yet; `schedule: {cadence: auto}` gives it one when `penstock up` runs"
COLUMNS = ("source", whole("class"), "since", whole("before", 4), whole("proposed", 1), "why")


def add_cadence(verbs: Any) -> None:
    parser = add_verb(verbs, "cadence", "the classes of `cadence: auto`", DESCRIPTION, EXAMPLES)
    parser.add_argument("source", metavar="SOURCE", nargs="?", help="only this one")
    hand = parser.add_mutually_exclusive_group()
    hand.add_argument("--set", metavar="CLASS", choices=CLASSES, help="low, medium or high")
    hand.add_argument("--undo", action="store_true", help="restore the previous class")
    add_reason(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened
    from penstock.errors import UsageError

    if args.source is None and (args.set or args.undo):
        raise UsageError("say which source is meant", "penstock schedules cadence SOURCE --undo")
    with opened(args) as project:
        schedules = project.schedules
        if args.undo:
            rows = [schedules.undo_cadence(args.source, reason=args.reason)]
        elif args.set:
            rows = [schedules.set_cadence(args.source, args.set, reason=args.reason)]
        else:
            rows = list(schedules.each_cadence(args.source))
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif rows:
        args.out.table(COLUMNS, (_line(row) for row in rows))
    else:
        args.out.line(NONE)
    return 0


def class_words(row: CadenceView) -> str:
    """The class that a source with `cadence: auto` has, since when, why, and what a person can do."""
    said = f"{row.level} since {local_time(row.since)}"
    command = f"penstock schedules cadence {row.source}"
    if row.proposed:
        return f"{said}; {row.proposed} is proposed: {row.reason}; {command} --set {row.proposed}"
    if row.level == "paused":
        return f"{said}, not even probed: {row.reason}; {command} --set {row.before or 'medium'}"
    return f"{said}: {row.reason}" if row.reason else said


def _line(row: CadenceView) -> tuple[object, ...]:
    moved = (row.before or "", row.proposed or "")
    return (row.source, row.level, local_time(row.since), *moved, row.reason)
