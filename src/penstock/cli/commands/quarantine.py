"""`penstock quarantine`: jobs that are not retried: list, release or discard them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from penstock.cli.confirmation import add_confirm, confirm
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
from penstock.cli.render.tables import column, whole
from penstock.cli.render.wording import count, local_time, shortened, shortened_inside
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.quarantine import DiscardedView, EntryFilter, EntryView, ReleasedView

DESCRIPTION = """\
Jobs that are no longer retried: they have no tries left, or another try cannot help. A page has one entry
with its error, traceback, input and notes, no matter how often and in how many runs it fails. The entry is
closed when a later run succeeds with the page."""
EXAMPLES = """\
  penstock quarantine list --source acme.com --kind data
  penstock quarantine list --closed
  penstock quarantine show 345
  penstock quarantine release --cause "selector .price" --reason "the parser is fixed"
  penstock quarantine discard --run 12 --dry-run
  penstock quarantine export --format csv > broken.csv
  penstock quarantine note 345 "asked the shop"
"""
LIST = """\
List quarantined jobs, by run and job. ! marks a cause that failed three times: nothing is retried for that
cause until the pipeline changes, or its jobs are released. --replays lists failures of replays and
probes instead; --closed lists entries that have left quarantine, newest first."""
SHOW = "Show one entry in full: error, traceback, input, page, attempts, notes."
RELEASE = """\
Queue these jobs again, with all their tries. An ended run opens again; jobs of a cancelled run are not
released. Says how many jobs it affects, and asks before it changes anything."""
DISCARD = """\
Cancel these jobs for good. Records saved before stay. Says how many jobs it affects, and asks before it
changes anything."""
EXPORT = """\
Print these entries in full, as lines of JSON or as CSV. In CSV, text that a spreadsheet would read as a
formula starts with an apostrophe. Secrets are masked."""
NOTE = "Add a note to an entry, for the next person who looks at it."
COLUMNS = (
    *("job", column("run", 3), "source", column("stage", 0), "kind"),
    *(whole("times", 4), "since", "key", "cause", "error"),
)
CLOSED_COLUMNS = (
    *("job", column("run", 3), "source", column("stage", 0), "kind"),
    *(whole("times", 4), whole("closed", 5), "key", column("why", 1), "error"),
)
LONGEST_KEY, LONGEST_CAUSE, LONGEST_ERROR = 200, 80, 200
SHOWN = 50
FORMATS = ("jsonl", "csv")
Acted = TypeVar("Acted", "ReleasedView", "DiscardedView")


def register(commands: Commands) -> None:
    parser = add_command(commands, "quarantine", DESCRIPTION, EXAMPLES.rstrip())
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=True)
    _register_looks(verbs)
    _register_acts(verbs)
    exporting = add_verb(
        verbs, "export", "export them", EXPORT, "  penstock quarantine export > broken.jsonl"
    )
    _add_filters(exporting)
    _add_closed(exporting)
    exporting.add_argument(
        "--format", choices=FORMATS, default="jsonl", metavar="FORMAT", help="jsonl (default), csv"
    )
    add_limit(exporting, None, "entries")
    exporting.set_defaults(run=export)
    noting = add_verb(
        verbs, "note", "add a note", NOTE, '  penstock quarantine note 345 "asked the shop"'
    )
    noting.add_argument("job_id", type=whole_number, metavar="JOB", help="the job")
    noting.add_argument("text", metavar="TEXT", help="the note")
    add_json(noting)
    noting.set_defaults(run=note)


def _register_looks(verbs: Commands) -> None:
    listing = add_verb(
        verbs, "list", "list the entries", LIST, "  penstock quarantine list --kind data"
    )
    _add_filters(listing)
    _add_closed(listing)
    add_limit(listing, SHOWN, "entries")
    add_private(listing)
    add_json(listing)
    listing.set_defaults(run=list_entries)
    showing = add_verb(verbs, "show", "show one entry", SHOW, "  penstock quarantine show 345")
    showing.add_argument("job_id", type=whole_number, metavar="JOB", help="the job")
    add_private(showing)
    add_json(showing)
    showing.set_defaults(run=show)


def _register_acts(verbs: Commands) -> None:
    for verb, summary, description, run in (
        ("release", "queue them again", RELEASE, release),
        ("discard", "cancel them for good", DISCARD, discard),
    ):
        acting = add_verb(
            verbs, verb, summary, description, f"  penstock quarantine {verb} --run 12 --dry-run"
        )
        _add_filters(acting)
        acting.add_argument("--all", action="store_true", help="everything in quarantine")
        acting.add_argument(
            "--dry-run", action="store_true", help="only print how many jobs it affects"
        )
        add_json(acting)
        add_reason(acting)
        add_confirm(acting)
        acting.set_defaults(run=run)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", metavar="SOURCE", help="only this source's")
    parser.add_argument(
        "--run", dest="run_id", type=whole_number, metavar="RUN", help="only this run's"
    )
    parser.add_argument("--stage", metavar="STAGE", help="only this stage's")
    parser.add_argument("--kind", metavar="KIND", help="only failures of this kind")
    parser.add_argument("--cause", metavar="CAUSE", help="only with exactly this cause")
    parser.add_argument(
        "--since", metavar="WHEN", help="only those of the last 2h, or since a date"
    )
    parser.add_argument("--escalated", action="store_true", help="only escalated causes")
    parser.add_argument(
        "--job", dest="job_id", type=whole_number, metavar="JOB", help="only this job"
    )
    parser.add_argument(
        "--replays", action="store_true", help="only failures of replays and probes"
    )


def _add_closed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--closed",
        action="store_true",
        help="entries that a later run or an operator closed, instead of open ones",
    )


def _wanted(project: Project, args: argparse.Namespace) -> EntryFilter:
    from penstock.app.moments import moment
    from penstock.app.views.quarantine import EntryFilter

    since = args.since and moment("--since", args.since, project.now())
    return EntryFilter(
        source=args.source,
        run_id=args.run_id,
        stage=args.stage,
        kind=args.kind,
        cause=args.cause,
        since=since or None,
        is_escalated=args.escalated,
        job_id=args.job_id,
        is_apart=args.replays,
        is_closed=getattr(args, "closed", False),
    )


def list_entries(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    out: Output = args.out
    with opened(args) as project:
        wanted = _wanted(project, args)
        rows = list(project.quarantine.each(wanted, limit=args.limit))
        total = project.quarantine.count(wanted) if len(rows) == args.limit else len(rows)
        if args.json:
            out.json_list(row.as_json() for row in rows)
        elif rows:
            if wanted.is_closed:
                out.table(CLOSED_COLUMNS, (_closed_line(row) for row in rows))
            else:
                out.table(COLUMNS, (_line(row) for row in rows))
            if total > len(rows):
                out.note(f"{len(rows)} of {total:,}; --limit N shows more, export all")
            _tell_causes(project, wanted, out)
        else:
            out.line(project.quarantine.nothing(wanted))
    return 0


def _line(row: EntryView) -> tuple[object, ...]:
    mark = "! " if row.escalated_at else ""
    return (
        *(str(row.id), str(row.run_id), row.source, row.stage, row.kind, row.quarantines),
        local_time(row.since),
        shortened_inside(row.key, LONGEST_KEY),
        shortened(mark + row.cause, LONGEST_CAUSE),
        shortened(row.error, LONGEST_ERROR),
    )


def _closed_line(row: EntryView) -> tuple[object, ...]:
    return (
        *(str(row.id), str(row.run_id), row.source, row.stage, row.kind, row.quarantines),
        local_time(row.closed_at),
        shortened_inside(row.key, LONGEST_KEY),
        shortened(row.closed_why, LONGEST_ERROR),
        shortened(row.error, LONGEST_ERROR),
    )


def _tell_causes(project: Project, wanted: EntryFilter, out: Output) -> None:
    for cause in project.quarantine.causes(wanted.source).items:
        if cause.escalated_at is not None:
            out.note(
                f"! {cause.source}: {cause.cause}: {count(cause.failures, 'job')} since "
                f"{local_time(cause.first_at)}; not retried until the pipeline changes or you release"
            )


def show(args: argparse.Namespace) -> int:
    from penstock.cli.commands.events import COLUMNS as EVENT_COLUMNS
    from penstock.cli.commands.events import event_line, latest
    from penstock.cli.lookup import opened

    out: Output = args.out
    with opened(args) as project:
        row = project.quarantine.get(args.job_id)
        events = latest(project, run=row.run_id, job=row.id, limit=SHOWN)
    if args.json:
        out.json({**row.as_json(), "events": [event.as_json() for event in events]})
        return 0
    out.fields(_fields(row))
    for line in (row.traceback or "").splitlines():
        out.line(f"  {line}")
    if events:
        out.line()
        out.table(EVENT_COLUMNS, (event_line(event) for event in events))
    if row.closed_at is not None:
        return 0
    out.line()
    if row.snapshot is not None:
        out.line(f"view it:        penstock page {row.id}")
    if row.unit != "run":
        out.line(f"try it:         penstock try {row.source} {row.id}")
    out.line(f"release it:     penstock quarantine release --job {row.id}")
    out.line(f"discard it:     penstock quarantine discard --job {row.id}")
    return 0


def _fields(row: EntryView) -> list[tuple[str, object]]:
    marked = f"since {local_time(row.escalated_at)}: nothing is retried for this cause"
    return [
        ("job", row.id),
        ("run", row.run_id),
        ("source", row.source),
        ("stage", f"{row.stage} ({row.unit})"),
        ("key", row.key),
        ("kind", row.kind),
        ("error", row.error),
        ("cause", row.cause),
        ("escalated", marked if row.escalated_at else ""),
        ("attempts", row.attempt),
        ("tries spent", row.tries),
        ("deaths", row.deaths or ""),
        ("here since", local_time(row.since)),
        ("times here", _times(row)),
        ("closed", f"{local_time(row.closed_at)}: {row.closed_why}" if row.closed_at else ""),
        (
            "page",
            f"{row.url} (snapshot {row.snapshot}, status {row.status})" if row.snapshot else "",
        ),
        ("item", row.item_text),
        *(("note", f"{local_time(n.at)} {n.actor}: {n.text}") for n in row.notes),
    ]


def _times(row: EntryView) -> str:
    if row.quarantines == 1:
        return "1"
    first, last = local_time(row.first_at), local_time(row.last_at)
    return f"{row.quarantines}, first {first}, last {last}"


def release(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        seen = _act(project, args, "release", project.quarantine.release)
        is_worked = bool(project.overview().workers)
    done = _tell_act(args, "release", seen, seen.released)
    if done and not args.json and not is_worked:
        args.out.line("No workers are running. Start one: penstock up")
    return 0


def discard(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        seen = _act(project, args, "discard", project.quarantine.discard)
    _tell_act(args, "discard", seen, seen.discarded)
    return 0


def _act(project: Project, args: argparse.Namespace, verb: str, act: Callable[..., Acted]) -> Acted:
    """Say how many, ask, and do it in batches; what workers took meanwhile is left to them."""
    out: Output = args.out
    wanted = _wanted(project, args)
    if wanted.is_all == (not args.all):
        told = "exclude each other" if args.all else "or --all"
        raise UsageError(f"{verb} what? A filter such as --run RUN, --cause CAUSE, {told}")
    seen = act(wanted, everything=args.all, dry_run=True)
    if args.dry_run:
        return seen
    confirm(
        args,
        f"{verb.capitalize()} {count(seen.jobs, 'job')} from quarantine?",
        f"quarantine.{verb}",
    )

    def tell(done: int, jobs: int) -> None:
        if out.stderr.isatty():
            out.note(f"{done:,} of {jobs:,}")

    return act(wanted, everything=args.all, on_progress=tell, reason=args.reason)


def _tell_act(
    args: argparse.Namespace, verb: str, seen: ReleasedView | DiscardedView, done: int
) -> int:
    out: Output = args.out
    if args.json:
        out.json(seen.as_json())
    elif not seen.is_done:
        out.line(f"would {verb} {count(seen.jobs, 'job')}; nothing was changed")
    else:
        out.line(f"{count(done, 'job')} {verb}{'d' if verb.endswith('e') else 'ed'}")
        if done < seen.jobs:
            out.note(
                f"{seen.jobs - done:,} were left: of cancelled runs, or changed by another command"
            )
    return done


def export(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened
    from penstock.cli.render.quarantine_export import write_entries

    out: Output = args.out
    with opened(args) as project:
        rows = project.quarantine.each(_wanted(project, args), is_whole=True, limit=args.limit)
        if args.format == "csv":
            write_entries(rows, out)
        else:
            for row in rows:
                out.json(row.as_json())
    return 0


def note(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        project.quarantine.note(args.job_id, args.text)
    if args.json:
        args.out.json({"job": args.job_id, "note": args.text.strip()})
    else:
        args.out.line(f"noted at job {args.job_id}")
    return 0
