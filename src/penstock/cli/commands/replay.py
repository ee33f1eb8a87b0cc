"""`penstock replay`: today's logic on the pages that were fetched, and what it would change."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.confirmation import add_confirm, confirm
from penstock.cli.parser import Commands, add_command, add_private, add_reason, whole_number
from penstock.cli.render.wording import count
from penstock.errors import Refused, UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.replays import TotalsView
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
SHOWN = 20
SHOWN_HTML = 1000


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
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="the difference as a page of HTML"
    )
    parser.add_argument("--json", action="store_true", help="print JSON: all of it, as one object")
    parser.add_argument(
        "--limit",
        type=whole_number,
        metavar="N",
        help=f"at most N records (as a table {SHOWN}, as HTML {SHOWN_HTML:,}, as JSON all)",
    )
    add_private(parser)
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
    if args.html and not args.html.parent.is_dir():
        raise UsageError(f"{args.html} can't be written: there is no folder {args.html.parent}")
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
    from penstock.app.run_performer import Interrupted
    from penstock.cli.commands.service import showing_progress

    if args.drop:
        raise Refused(f"replay {row.id} is {row.state}", f"penstock cancel {row.id}, then drop it")
    out: Output = args.out
    try:
        with showing_progress(out) as (show, tell):
            project.runs.finish([row.id], on_progress=show, tell=tell)
    except Interrupted:
        out.error("interrupted; nothing is lost", f"to continue: penstock replay {row.id}")
    return project.runs.get(row.id)


def _act(project: Project, row: RunView, args: argparse.Namespace) -> None:
    if args.commit:
        _commit(project, row, args)
    elif args.drop:
        _drop(project, row, args)
    else:
        show(project, row, args)


def show(project: Project, row: RunView, args: argparse.Namespace) -> None:
    """The difference of a replay that has ended, in the form that is asked for."""
    if args.html:
        _write_html(project, row, args)
    elif args.json:
        _write_json(project, row, args)
    else:
        _tell(project, row, args)


def _tell(project: Project, row: RunView, args: argparse.Namespace) -> None:
    from penstock.cli.render.diffs import tell_changes, tell_rejects, tell_totals

    out: Output = args.out
    diff = project.replays.diff(row.id, args.limit or SHOWN)
    failed = f", {row.quarantined} failed" if row.quarantined else ""
    what = f"of run {row.of_run_id}" if row.of_run_id is not None else f"of {row.source}"
    by = f" by release {row.options.by_release[:12]}" if row.options.by_release else ""
    out.line(
        f"replay {row.id} {what}{by}: {count(row.counts['pages'], 'page')}, {row.state}{failed}"
    )
    out.line()
    tell_totals(out, diff.totals)
    tell_changes(out, diff.first)
    tell_rejects(out, diff.rejected, args.limit or SHOWN)
    everything = diff.totals.differences + diff.totals.left_alone
    out.line()
    if everything > len(diff.first):
        out.line(
            f"{len(diff.first)} of {everything:,} records; --limit N, --html FILE or --json show more"
        )
    _tell_what_next(diff.totals, row, out)


def _tell_what_next(totals: TotalsView, row: RunView, out: Output) -> None:
    if row.quarantined:
        out.line(f"what failed:  penstock quarantine list --run {row.id}")
    if totals.differences or totals.left_alone:
        out.line(f"apply it:     penstock replay {row.id} --commit")
    else:
        out.line("nothing would change")
        if row.state == "completed":
            out.line(f"its pages are done with today's logic:  penstock replay {row.id} --commit")
    out.line(f"drop it:      penstock replay {row.id} --drop")


def _write_json(project: Project, row: RunView, args: argparse.Namespace) -> None:
    """As it comes: a million changes need no more memory than a page of them."""
    out: Output = args.out
    # Asked for before anything is written: what is refused must not leave half an object behind.
    changes = project.replays.changes(row.id)
    written = 0
    head = {"replay": row.id, "of_run": row.of_run_id, "source": row.source, "state": row.state}
    pages = {"pages": row.counts["pages"], "failed": row.quarantined}
    out.stdout.write(out.as_json({**head, **pages})[:-1] + ',"changes":[')
    for change in changes:
        if args.limit is None or written < args.limit:
            out.stdout.write(("," if written else "") + "\n" + out.as_json(change.as_json()))
            written += 1
    tail = {
        "totals": changes.totals.as_json(),
        "rejected": project.replays.rejected(row.id).as_json(),
    }
    out.stdout.write("],\n" + out.as_json(tail)[1:] + "\n")


def _write_html(project: Project, row: RunView, args: argparse.Namespace) -> None:
    from penstock.cli.render.diff_html import page
    from penstock.private_files import open_report

    out: Output = args.out
    diff = project.replays.diff(row.id, args.limit or SHOWN_HTML)
    try:
        with open_report(args.html) as file:
            file.writelines(page(diff, out.as_json, out.tidy))
    except OSError as error:
        raise UsageError(f"{args.html} can't be written ({error.strerror})") from None
    out.line(f"the difference of replay {row.id} is in {args.html}")


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
