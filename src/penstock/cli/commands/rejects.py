"""`penstock rejects`: what was judged and not wanted; look at it, and judge it again."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.confirmation import add_yes, confirm
from penstock.cli.parser import (
    Commands,
    add_command,
    add_json,
    add_limit,
    add_private,
    add_reason,
    add_verb,
    whole_number,
)
from penstock.cli.render.output import Output
from penstock.cli.render.tables import column, text, whole
from penstock.cli.render.wording import count, local_time, shortened, shortened_inside

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.rejects import RejectFilter, RejectView

DESCRIPTION = """\
Items that a pipeline rejected: by raising Reject, with ctx.reject, or because their score was below the
source's threshold. Each is kept with its item, so that you can redrive it after a fix."""
EXAMPLES = """\
  penstock rejects list --source acme.com --code no_price
  penstock rejects show 7
  penstock rejects redrive --source acme.com --code no_price --reason "the parser is fixed" """
LIST = "List rejects, newest first."
SHOW = "Show one reject with its item, its page and its redrive."
REDRIVE = """\
Start a run whose jobs are the rejected items, at the stages that rejected them, with the current
pipeline and threshold and without the network. Accepted items become records; the others are rejected again.
An item that was rejected several times is redriven once, in its latest version."""
COLUMNS = (
    *("reject", "source", column("run", 3), column("stage", 4), "code", whole("score", 4)),
    *("at", whole("redriven", 2), "key", text("reason", 1)),
)
LONGEST_KEY, LONGEST_REASON = 200, 120


def register(commands: Commands) -> None:
    parser = add_command(commands, "rejects", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=True)
    listing = add_verb(verbs, "list", "list rejects", LIST, "  penstock rejects list --run 12")
    _add_filters(listing)
    listing.add_argument("--open", action="store_true", help="only those not redriven yet")
    add_limit(listing, 50, "rejects")
    add_private(listing)
    add_json(listing)
    listing.set_defaults(run=tell)
    showing = add_verb(verbs, "show", "show one reject", SHOW, "  penstock rejects show 7")
    showing.add_argument("reject_id", type=whole_number, metavar="REJECT", help="the reject")
    add_private(showing)
    add_json(showing)
    showing.set_defaults(run=show)
    driving = add_verb(
        verbs,
        "redrive",
        "process them again",
        REDRIVE,
        "  penstock rejects redrive --source acme.com --code no_price\n"
        "  penstock rejects redrive --id 7 --id 8 --yes",
    )
    _add_filters(driving)
    driving.add_argument(
        "--id",
        dest="ids",
        type=whole_number,
        action="append",
        metavar="REJECT",
        help="only this one; repeatable",
    )
    add_reason(driving)
    add_yes(driving)
    add_json(driving)
    driving.set_defaults(run=redrive)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", metavar="SOURCE", help="only this source's")
    parser.add_argument(
        "--run", dest="run_id", type=whole_number, metavar="RUN", help="only this run's"
    )
    parser.add_argument("--code", metavar="CODE", help="only those with this code")
    parser.add_argument(
        "--since", metavar="WHEN", help="only those of the last 2h, or since a date"
    )


def tell(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        wanted = _wanted(project, args, open_only=args.open)
        rows = list(project.rejects.each(wanted, limit=args.limit))
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif rows:
        args.out.table(COLUMNS, (_line(row) for row in rows))
        if len(rows) == args.limit:
            args.out.note(f"the newest {args.limit}; there may be more: --limit")
    else:
        args.out.line("no such rejects")
    return 0


def show(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    out: Output = args.out
    with opened(args) as project:
        row = project.rejects.get(args.reject_id)
    if args.json:
        out.json(row.as_json())
        return 0
    out.fields(
        [
            ("reject", row.id),
            ("source", row.source),
            ("run", row.run_id),
            ("job", row.job_id),
            ("stage", row.stage),
            ("key", row.key),
            ("code", row.code),
            ("reason", row.reason),
            ("score", row.score),
            ("at", local_time(row.at)),
            ("snapshot", row.snapshot_id),
            ("redriven by", f"run {row.redriven_run_id}" if row.redriven_run_id else ""),
            ("item", row.item),
        ]
    )
    if row.redriven_run_id is None:
        out.line()
        out.line(f"redrive it:  penstock rejects redrive --id {row.id}")
    return 0


def redrive(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    out: Output = args.out
    with opened(args) as project:
        wanted = _wanted(project, args)
        seen = project.rejects.redrive(wanted, dry_run=True)
        confirm(args, f"Redrive {count(seen.rejects, 'reject')} of {seen.source}?")
        redriven = project.rejects.redrive(wanted, reason=args.reason)
        is_worked = bool(project.overview().workers)
    if args.json:
        out.json(redriven.as_json())
        return 0
    items = count(redriven.items or 0, "item")
    out.line(f"run {redriven.run_id} redrives {items} of {count(redriven.rejects, 'reject')}")
    if redriven.rejects < seen.rejects:
        out.line(
            f"{count(seen.rejects - redriven.rejects, 'reject')} are left: run the same command again"
        )
    if not is_worked:
        out.line("No workers are running. Start one: penstock up")
    return 0


def _wanted(project: Project, args: argparse.Namespace, *, open_only: bool = False) -> RejectFilter:
    from penstock.app.moments import moment
    from penstock.app.views.rejects import RejectFilter

    return RejectFilter(
        source=args.source,
        run_id=args.run_id,
        code=args.code,
        since=args.since and moment("--since", args.since, project.now()),
        ids=tuple(getattr(args, "ids", None) or ()),
        open_only=open_only,
    )


def _line(row: RejectView) -> tuple[object, ...]:
    return (
        *(str(row.id), row.source, str(row.run_id), row.stage, row.code),
        "" if row.score is None else f"{row.score:g}",
        local_time(row.at),
        "" if row.redriven_run_id is None else f"run {row.redriven_run_id}",
        shortened_inside(row.key, LONGEST_KEY),
        shortened(row.reason, LONGEST_REASON),
    )
