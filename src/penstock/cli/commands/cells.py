"""`penstock cells`: the databases that a project's sources are divided over, and moving a source."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.confirmation import add_yes, confirm
from penstock.cli.parser import (
    Commands,
    add_command,
    add_json,
    add_limit,
    add_reason,
    add_verb,
    whole_number,
)
from penstock.cli.render.tables import key_column, text, whole
from penstock.cli.render.wording import count, local_time

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.cells import (
        CellAlertView,
        CellFoundView,
        CellRunView,
        CellSourceView,
        CellView,
        MoveView,
        SourcePlaceView,
    )
    from penstock.cli.render.output import Output

DESCRIPTION = """\
Cells: the sources of one project divided over several Postgres databases, each with workers of its own
(`cells:` in penstock.yaml). `store:` is the cell `main`, which has every source that was not placed
elsewhere. `penstock --cell NAME up` works for one cell, and performs no source that another cell has."""
EXAMPLES = """\
  penstock cells                                  every cell, with its counts
  penstock cells status                           the sums over all cells
  penstock cells runs --active                    what goes on in all cells
  penstock cells place acme.com                   a new source, into the cell that its key chooses
  penstock cells move acme.com --to north         a source with all that it has
  penstock --cell north up                        work for the cell north"""
LIST = "Every cell with its counts. One that is down says so; nobody waits longer than five seconds for it."
STATUS = """\
The counts of all cells together, and of each. Exit code 3 if a cell did not answer: the sums lack what it
has."""
SOURCES = "The sources of all cells, or of one: where each of them is, and what it is doing there."
RUNS = """\
The newest runs of all cells, each with its cell. Exit code 3 if a cell did not answer: its runs are
missing."""
ALERTS = """\
The newest alerts of all cells, each with its cell. Exit code 3 if a cell did not answer: its alerts are
missing."""
SEARCH = """\
What is called like this in any cell: sources, runs and jobs by number, records by the beginning of their
key, pages by their address. Exit code 3 if a cell did not answer."""
SHOW = "Which cell has a source, and whether it is moving."
PLACE = """\
Put a source that has never run into a cell. Without --to, its key chooses the cell: always the same one, as
long as the cells are the same. What has run is moved."""
MOVE = """\
Move a source with all that it has to another cell: runs, jobs, records, checkpoints, schedules, snapshots,
budgets, breaker, alerts and figures. It is stopped, its running jobs finish, its rows are copied and
compared, and one commit gives it away. Until then it is where it was. Killed anywhere, the same command
continues the move. Its journal and its logs stay where they were written. --to the cell where it is calls
off a move that has begun."""
COLUMNS = (
    key_column("cell", least=8),
    whole("number", 5),
    whole("sources"),
    whole("active runs", 1),
    whole("queued"),
    whole("running", 1),
    whole("quarantined", 2),
    whole("workers"),
    text("store", 3),
)
SOURCE_COLUMNS = (
    key_column("source"),
    whole("cell"),
    whole("state"),
    whole("to", 1),
    whole("queued", 1),
    whole("running", 1),
    whole("quarantined", 2),
    text("last run", 3),
)
RUN_COLUMNS = (
    key_column("run", least=6),
    whole("cell"),
    text("source"),
    whole("kind", 2),
    whole("state"),
    whole("began", 1),
    whole("quarantined", 3),
)
ALERT_COLUMNS = (
    key_column("alert", least=6),
    whole("cell"),
    whole("severity", 1),
    whole("state"),
    whole("source", 2),
    text("what", 1),
)
FOUND_COLUMNS = (key_column("cell"), whole("what"), whole("name"), text("of", 1))
STATES = ("unresolved", "open", "acknowledged", "resolved", "all")
MOVED = ("runs", "jobs", "records", "snapshots", "checkpoints", "schedules")


def register(commands: Commands) -> None:
    parser = add_command(commands, "cells", DESCRIPTION, EXAMPLES)
    add_json(parser)
    parser.set_defaults(run=show_list)
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", title="commands")
    listing = add_verb(verbs, "list", "every cell", LIST, "  penstock cells list --json")
    add_json(listing)
    listing.set_defaults(run=show_list)
    summing = add_verb(verbs, "status", "all cells together", STATUS, "  penstock cells status")
    add_json(summing)
    summing.set_defaults(run=show_status)
    sources = add_verb(
        verbs, "sources", "where sources are", SOURCES, "  penstock cells sources --in north"
    )
    sources.add_argument("--in", dest="only", metavar="CELL", help="of this cell only")
    add_limit(sources, None, "sources")
    add_json(sources)
    sources.set_defaults(run=show_sources)
    _add_lists(verbs)
    showing = add_verb(verbs, "show", "which cell has it", SHOW, "  penstock cells show acme.com")
    showing.add_argument("source", metavar="SOURCE", help="the source")
    add_json(showing)
    showing.set_defaults(run=show_place)
    placing = add_verb(
        verbs, "place", "put a new source", PLACE, "  penstock cells place acme.com --to north"
    )
    moving = add_verb(
        verbs, "move", "move a source", MOVE, "  penstock cells move acme.com --to north --dry-run"
    )
    for each, needed in ((placing, False), (moving, True)):
        each.add_argument("source", metavar="SOURCE", help="the source")
        each.add_argument("--to", metavar="CELL", required=needed, help="the cell")
        each.add_argument("--dry-run", action="store_true", help="only say what it would be")
        add_json(each)
        add_reason(each)
        add_yes(each)
    moving.add_argument(
        "--drain", type=whole_number, default=600, metavar="S",
        help="wait so many seconds for running jobs (600)",
    )  # fmt: skip
    placing.set_defaults(run=place)
    moving.set_defaults(run=move)


def _add_lists(verbs: Commands) -> None:
    """What the cells have, each row with its cell."""
    runs = add_verb(verbs, "runs", "their newest runs", RUNS, "  penstock cells runs --active")
    runs.add_argument("--active", action="store_true", help="only those that go on")
    add_limit(runs, 20, "runs")
    runs.set_defaults(run=show_runs)
    alerts = add_verb(verbs, "alerts", "their alerts", ALERTS, "  penstock cells alerts")
    alerts.add_argument(
        "--state", choices=STATES, default=STATES[0], help="only these (unresolved)"
    )
    add_limit(alerts, 20, "alerts")
    alerts.set_defaults(run=show_alerts)
    search = add_verb(verbs, "search", "what is called so", SEARCH, "  penstock cells search acme")
    search.add_argument("text", metavar="TEXT", help="a source, a run or job, a key or an address")
    search.set_defaults(run=show_found)
    for each in (runs, alerts, search):
        add_json(each)


def show_list(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        cells = project.cells.list()
    if args.json:
        args.out.json_list(each.as_json() for each in cells)
    else:
        _tell_cells(cells, args.out)
    _tell_silent(cells, args.out)
    return exits.DONE


def _tell_cells(cells: Sequence[CellView], out: Output) -> None:
    out.table(COLUMNS, map(_row, cells))


def _row(each: CellView) -> tuple[object, ...]:
    name = f"{each.name} (this)" if each.is_this else each.name
    if not each.is_reachable:
        return (name, each.number, *["?"] * 6, each.store)
    counts = (each.sources, each.active_runs, each.queued, each.running, each.quarantined)
    return (name, each.number, *counts, each.workers, each.store)


def _tell_silent(cells: Sequence[CellView], out: Output) -> None:
    for each in cells:
        if not each.is_reachable:
            out.note(f"cell {each.name} does not answer: {each.error}")


def show_status(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.cells.status()
    if args.json:
        args.out.json(found.as_json())
    else:
        args.out.fields(
            [
                ("cells", _cells_words(len(found.cells), found.unreachable)),
                ("sources", found.sources),
                ("active runs", found.active_runs),
                ("queued", found.queued),
                ("running", found.running),
                ("waiting", found.waiting),
                ("quarantined", found.quarantined),
                ("records", found.records),
                ("workers", found.workers),
            ]
        )
        args.out.line()
        _tell_cells(found.cells, args.out)
    _tell_silent(found.cells, args.out)
    return exits.DONE if found.is_whole else exits.PARTIAL


def _cells_words(cells: int, silent: list[str]) -> str:
    return f"{cells}, without {', '.join(silent)}" if silent else str(cells)


def show_sources(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    rows: list[CellSourceView] = []
    silent: list[str] = []
    cursor = None
    with opened(args) as project:
        while args.limit is None or len(rows) < args.limit:
            page = project.cells.sources(cell=args.only, cursor=cursor, limit=1000)
            rows += page.items
            silent += [each for each in page.unreachable if each not in silent]
            cursor = page.next
            if cursor is None:
                break
    rows = rows[: args.limit]
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    else:
        _tell_sources(rows, args.out)
    return _without(silent, args.out)


def show_runs(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.cells.runs(active=args.active, limit=args.limit)
    if args.json:
        args.out.json(found.as_json())
    else:
        _tell_runs(found.runs, args.out)
    return _without(found.unreachable, args.out)


def _tell_runs(rows: Sequence[CellRunView], out: Output) -> None:
    out.table(RUN_COLUMNS, map(_run_row, rows))


def _run_row(each: CellRunView) -> tuple[object, ...]:
    run = each.run
    began = local_time(run.started_at or run.created_at)
    return (str(run.id), each.cell, run.source, run.kind, run.state, began, run.quarantined)


def show_alerts(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.cells.alerts(state=args.state, limit=args.limit)
    if args.json:
        args.out.json(found.as_json())
    else:
        _tell_alerts(found.alerts, args.out)
    return _without(found.unreachable, args.out)


def _tell_alerts(rows: Sequence[CellAlertView], out: Output) -> None:
    out.table(ALERT_COLUMNS, map(_alert_row, rows))


def _alert_row(each: CellAlertView) -> tuple[object, ...]:
    one = each.alert
    return (str(one.id), each.cell, one.severity, one.state, one.source or "", one.summary)


def show_found(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.cells.search(args.text)
    if args.json:
        args.out.json(found.as_json())
    else:
        _tell_found([line for each in found.cells for line in _found_lines(each)], args.out)
    return _without(found.unreachable, args.out)


def _tell_found(rows: Sequence[tuple[object, ...]], out: Output) -> None:
    out.table(FOUND_COLUMNS, rows)


def _found_lines(each: CellFoundView) -> list[tuple[object, ...]]:
    it, cell = each.found, each.cell
    return [
        *((cell, "source", key, "") for key in it.sources),
        *((cell, "run", str(run.id), run.source) for run in it.runs),
        *((cell, "job", str(job.id), job.source) for job in it.jobs),
        *((cell, "record", one.key, one.collection) for one in it.records),
        *((cell, "page", str(page.id), page.url) for page in it.pages),
    ]


def _without(silent: Sequence[str], out: Output) -> int:
    """What is missing, and the exit code that says so."""
    for each in silent:
        out.note(f"cell {each} does not answer")
    return exits.PARTIAL if silent else exits.DONE


def _tell_sources(rows: Sequence[CellSourceView], out: Output) -> None:
    out.table(SOURCE_COLUMNS, map(_source_row, rows))


def _source_row(row: CellSourceView) -> tuple[object, ...]:
    counts = (row.queued, row.running, row.quarantined)
    return (row.key, row.cell, row.state, row.to, *counts, row.last_state or "")


def show_place(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.cells.get(args.source)
    if args.json:
        args.out.json(found.as_json())
    else:
        args.out.line(_place_words(found))
    for each in found.unreachable:
        args.out.note(f"cell {each} does not answer")
    return exits.DONE if found.cell else exits.PARTIAL


def _place_words(found: SourcePlaceView) -> str:
    match found.state:
        case "here":
            return f"{found.key} is in {found.cell}"
        case "leaving":
            return (
                f"{found.key} is in {found.cell}, stopped on its way to {found.to}: penstock cells "
                f"move {found.key} --to {found.to} continues"
            )
        case "arriving":
            return (
                f"{found.key} is in {found.cell}, which does not perform it yet: penstock cells "
                f"move {found.key} --to {found.cell} finishes its move"
            )
    return f"nobody who answers has {found.key}"


def place(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        seen = project.cells.place(args.source, to=args.to, dry_run=True)
        if not args.dry_run:
            confirm(args, f"Put {seen.key} into the cell {seen.to}?")
            seen = project.cells.place(args.source, to=seen.to, reason=args.reason)
    return _told(seen, args)


def move(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        seen = project.cells.move(args.source, args.to, dry_run=True)
        if not args.dry_run:
            _ask(project, seen, args)
            seen = project.cells.move(
                args.source,
                args.to,
                drain_s=args.drain,
                on_progress=args.out.note,
                reason=args.reason,
            )
    return _told(seen, args)


def _ask(project: Project, seen: MoveView, args: argparse.Namespace) -> None:
    if seen.origin == seen.to:
        confirm(args, f"Leave {seen.key} where it is, in {seen.origin}?")
    else:
        what = "Continue moving" if seen.is_continued else "Stop and move"
        confirm(args, f"{what} {seen.key} from {seen.origin} to {seen.to}?")


def _told(seen: MoveView, args: argparse.Namespace) -> int:
    out: Output = args.out
    if args.json:
        out.json(seen.as_json())
        return exits.DONE
    if seen.is_moved:
        out.line(f"{seen.key} is in {seen.to}")
    elif seen.origin == seen.to:
        would = "would stay" if args.dry_run else "stays"
        out.line(f"{seen.key} {would} in {seen.origin}")
    else:
        counts = ", ".join(f"{getattr(seen, name):,} {name}" for name in MOVED)
        out.line(f"{seen.key} would move from {seen.origin} to {seen.to}, with {counts}")
        if seen.running:
            out.line(f"{count(seen.running, 'job')} of it would finish first")
    return exits.DONE
