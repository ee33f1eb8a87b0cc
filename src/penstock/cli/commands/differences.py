"""The difference that a replay or a shadow has staged: the options to see it, and how it is shown."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.parser import add_private, whole_number
from penstock.cli.render.wording import count
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.replays import TotalsView
    from penstock.app.views.runs import RunView
    from penstock.cli.render.output import Output

SHOWN = 20
SHOWN_HTML = 1000


def add_difference(parser: argparse.ArgumentParser) -> None:
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


def refuse_html(args: argparse.Namespace) -> None:
    """Before work begins whose result could not be written."""
    if args.html and not args.html.parent.is_dir():
        raise UsageError(f"{args.html} can't be written: there is no folder {args.html.parent}")


def finish(project: Project, runs: list[int], again: str, out: Output) -> bool:
    """Wait for the runs with their progress shown; False when a person has interrupted it."""
    from penstock.app.run_performer import Interrupted
    from penstock.cli.commands.service import showing_progress

    try:
        with showing_progress(out) as (shown, tell):
            project.runs.finish(runs, on_progress=shown, tell=tell)
    except Interrupted:
        out.error("interrupted; nothing is lost", again)
        return False
    return True


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
