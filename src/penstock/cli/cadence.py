"""`penstock schedules cadence`: which class sources with `cadence: auto` have, and a person's hand."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from penstock.cli.parser import add_command, add_json, add_reason
from penstock.cli.tables import whole
from penstock.cli.wording import iso, local_time

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.settings import ScheduleSettings
    from penstock.store.cadences import CadenceRow

DESCRIPTION = """\
Sources whose cadence is auto: the class that each has, since when, and why. With --set a source is given
another class, with --undo the one that it had before; what comes of its next runs may move it again."""
EXAMPLES = """\
  penstock schedules cadence
  penstock schedules cadence acme.com --set low --reason "they publish monthly now"
  penstock schedules cadence acme.com --undo"""
CLASSES = ("low", "medium", "high")
NONE = "no source has a class yet; `schedule: {cadence: auto}` gives it one when `penstock up` runs"
COLUMNS = ("source", whole("class"), "since", whole("before", 4), whole("proposed", 1), "why")


def add_cadence(verbs: Any) -> None:
    parser = add_command(verbs, "cadence", "the classes of `cadence: auto`", DESCRIPTION, EXAMPLES)
    parser.add_argument("source", metavar="SOURCE", nargs="?", help="only this one")
    hand = parser.add_mutually_exclusive_group()
    hand.add_argument("--set", metavar="CLASS", choices=CLASSES, help="low, medium or high")
    hand.add_argument("--undo", action="store_true", help="back to the class before")
    add_reason(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened, source_key
    from penstock.errors import UsageError

    if args.source is None and (args.set or args.undo):
        raise UsageError("say which source is meant", "penstock schedules cadence SOURCE --undo")
    with opened(args) as project:
        key = source_key(project, args.source)
        _refuse_others(project, key)
        if key is not None and (args.set or args.undo):
            rows = [_moved(project, key, args)]
        else:
            rows = [row for row in project.store.cadences() if key in (None, row.source)]
    if args.json:
        args.out.json_list([_shape(row) for row in rows])
        return 0
    if rows:
        args.out.table(COLUMNS, (_line(row) for row in rows))
    else:
        args.out.line(NONE)
    return 0


def _refuse_others(project: Project, key: str | None) -> None:
    from penstock.engine.leader.cadences import auto_sources
    from penstock.errors import UsageError

    if key is not None and key not in auto_sources(project):
        raise UsageError(f"the cadence of {key} is not auto", "schedule: {cadence: auto}")


def words_now(project: Project, key: str, settings: ScheduleSettings) -> str:
    """The policy of a schedule in words, with the class that its source has now where it is auto."""
    from penstock.schedules.auto import is_auto

    found = project.store.cadences(project.source_ids[key]) if is_auto(settings) else []
    return words_of(key, settings, found[0] if found else None)


def words_of(key: str, settings: ScheduleSettings, cadence: CadenceRow | None) -> str:
    """The same, where the class of the source is known already."""
    from penstock.engine.leader.cadences import standing_of
    from penstock.schedules.auto import is_auto
    from penstock.schedules.definition import policy_words

    if cadence is None or not is_auto(settings):
        return policy_words(settings, key)
    return policy_words(settings, key, standing_of(cadence), cadence.proposed)


def class_words(row: CadenceRow) -> str:
    """The class that a source with `cadence: auto` has, since when, why, and what a person can do."""
    said = f"{row.level} since {local_time(row.since)}"
    command = f"penstock schedules cadence {row.source}"
    if row.proposed:
        return f"{said}; {row.proposed} is proposed: {row.reason}; {command} --set {row.proposed}"
    if row.level == "paused":
        return f"{said}, not even probed: {row.reason}; {command} --set {row.before or 'medium'}"
    return f"{said}: {row.reason}" if row.reason else said


def _moved(project: Any, key: str, args: argparse.Namespace) -> CadenceRow:
    from penstock.engine.leader.cadences import set_cadence, undo_cadence
    from penstock.project import default_actor

    if args.undo:
        return undo_cadence(project, key, default_actor(), args.reason)
    return set_cadence(project, key, args.set, default_actor(), args.reason)


def _line(row: CadenceRow) -> tuple[object, ...]:
    return (row.source, row.level, local_time(row.since), row.before, row.proposed, row.reason)


def _shape(row: CadenceRow) -> dict[str, Any]:
    return {
        "source": row.source,
        "class": row.level,
        "since": iso(row.since),
        "before": row.before or None,
        "proposed": row.proposed or None,
        "reason": row.reason,
        "runs_in_a_row": row.steps,
        "last_run": row.last_run_id or None,
    }
