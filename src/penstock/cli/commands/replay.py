"""`penstock replay`: today's logic on the pages that were fetched, and what it would change."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.commands.differences import add_difference, finish, refuse_html, show
from penstock.cli.confirmation import add_confirm, confirm
from penstock.cli.parser import Commands, add_command, add_reason, whole_number
from penstock.cli.render.wording import count
from penstock.errors import Refused, UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.runs import RunView
    from penstock.cli.render.output import Output

DESCRIPTION = """\
Process the pages of a run again with today's pipeline. Nothing is fetched: every page is served from its
snapshot. Nothing is changed either: what would be saved is staged, and shown as a difference, record by
record and field by field. A replay is a run of its own; its number takes --diff again, --commit or --drop."""
EXAMPLES = """\
  penstock replay 12                    what would run 12 give today?
  penstock replay 12 --html diff.html   the same as a page to look at
  penstock replay 14 --commit           apply what replay 14 has staged
  penstock replay 14 --drop             drop it
  penstock replay 12 --quarantined      only the pages that failed
  penstock replay --source acme.com --since 7d

exit codes: as `penstock run`, for the replay"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "replay", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "run_id", nargs="?", type=whole_number, metavar="RUN", help="a run, or a replay of one"
    )
    parser.add_argument("--source", metavar="SOURCE", help="all pages of this source")
    parser.add_argument(
        "--since", metavar="TIME", help="since a day or time, or for a duration: 7d"
    )
    parser.add_argument("--quarantined", action="store_true", help="only pages in quarantine")
    act = parser.add_mutually_exclusive_group()
    act.add_argument("--diff", action="store_true", help="show what would change (default)")
    act.add_argument("--commit", action="store_true", help="apply it")
    act.add_argument("--drop", action="store_true", help="discard it")
    parser.add_argument(
        "--force",
        action="store_true",
        help="with --commit: also overwrite what other runs changed since",
    )
    parser.add_argument("--detach", action="store_true", help="only queue the replay, do not wait")
    add_difference(parser)
    add_reason(parser)
    add_confirm(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    _refuse_contradictions(args)
    with opened(args) as project:
        row = None if args.run_id is None else project.runs.get(args.run_id)
        if row is not None and row.options.is_staged:
            _refuse_for_replays(args)
        elif args.drop:
            raise UsageError(f"run {args.run_id} is no replay; there is nothing to drop")
        else:
            row = _begun(project, args)
        if args.detach:
            _tell_queued(row, args)
            return exits.DONE
        if not row.is_ended:
            row = _worked(project, row, args)
        if not row.is_ended:
            return exits.INTERRUPTED
        _act(project, row, args)
        return exits.of_runs([row.state])


def _refuse_contradictions(args: argparse.Namespace) -> None:
    refuse_html(args)
    if (args.run_id is None) == (args.source is None):
        raise UsageError("replay what? A RUN, or --source SOURCE --since TIME")
    if (args.source is None) != (args.since is None):
        raise UsageError("--source and --since belong together: what it has fetched, since when?")
    if args.force and not args.commit:
        raise UsageError("--force is for --commit")
    if args.html and (args.commit or args.drop or args.detach):
        raise UsageError("--html shows a difference; it goes with --diff")
    if args.detach and (args.commit or args.drop):
        raise UsageError("--detach does not wait, so there is nothing to commit or drop yet")


def _refuse_for_replays(args: argparse.Namespace) -> None:
    if args.quarantined or args.detach:
        raise UsageError(
            f"run {args.run_id} is a replay already; it takes --diff, --commit or --drop"
        )


def _begun(project: Project, args: argparse.Namespace) -> RunView:
    """A new replay, or the same one if it was interrupted."""
    from penstock.app.moments import moment

    out: Output = args.out
    since = None if args.source is None else moment("--since", args.since, project.now())
    begun = project.replays.start(
        args.run_id,
        source=args.source,
        since=since,
        quarantined=args.quarantined,
        reason=args.reason,
    )
    if begun.missing_pages:
        gone = count(begun.missing_pages, "page")
        out.note(f"{gone} can't be replayed: retention dropped their jobs")
    if begun.unknown_steps:
        steps = ", ".join(begun.unknown_steps)
        out.note(f"the pipeline has no step {steps} any more; its pages are left out")
    if not begun.is_new:
        out.note(f"replay {begun.run.id} has not ended yet; continuing it")
    if begun.cancelled is not None:
        out.note(f"replay {begun.cancelled} was of another version of the pipeline; cancelled")
    return begun.run


def _tell_queued(row: RunView, args: argparse.Namespace) -> None:
    if args.json:
        args.out.json({"replay": row.id, "of_run": row.of_run_id, "state": row.state})
    else:
        args.out.line(f"replay {row.id} of {row.source} is {row.state}")
        args.out.note(f"when it has ended: penstock replay {row.id} --diff")


def _worked(project: Project, row: RunView, args: argparse.Namespace) -> RunView:
    if args.drop:
        raise Refused(f"replay {row.id} is {row.state}", f"penstock cancel {row.id}, then drop it")
    finish(project, [row.id], f"to continue: penstock replay {row.id}", args.out)
    return project.runs.get(row.id)


def _act(project: Project, row: RunView, args: argparse.Namespace) -> None:
    if args.commit:
        _commit(project, row, args)
    elif args.drop:
        _drop(project, row, args)
    else:
        show(project, row, args)


def _commit(project: Project, row: RunView, args: argparse.Namespace) -> None:
    out: Output = args.out
    totals = project.replays.diff(row.id, 0).totals
    forced = totals.left_alone
    what = f"{totals.added} added, {totals.changed} changed, {totals.removed} removed"
    if args.force and forced:
        what += f", {forced} changed since or newer, overwritten"
    confirm(args, f"Commit replay {row.id} to the records of {row.source} ({what})?")
    done = project.replays.commit(row.id, force=args.force, reason=args.reason)
    if args.json:
        out.json({"replay": row.id, "committed": done.as_json()})
        return
    out.line(f"committed: {done.added} added, {done.changed} changed, {done.removed} removed")
    left = done.conflicts + done.newer
    if left:
        out.line(f"left alone: {count(left, 'record')} changed since, or saved by a newer run")
        out.line(f"overwrite them: penstock replay {row.id} --commit --force")
        out.line(f"drop them:      penstock replay {row.id} --drop")
    if done.added or done.changed or done.removed:
        out.line(f"to undo:        penstock undo {row.id}")
    if row.options.is_quarantined_only and project.runs.get(row.of_run_id or 0).quarantined:
        out.line(f"still failing:  penstock quarantine list --run {row.of_run_id}")
        out.line(f"discard them:   penstock quarantine discard --run {row.of_run_id}")


def _drop(project: Project, row: RunView, args: argparse.Namespace) -> None:
    confirm(args, f"Drop what replay {row.id} of {row.source} has staged?", "replays.drop")
    dropped = project.replays.drop(row.id, reason=args.reason)
    if args.json:
        args.out.json({"replay": row.id, "dropped": dropped})
    else:
        args.out.line(f"dropped: what replay {row.id} had staged for {count(dropped, 'record')}")
