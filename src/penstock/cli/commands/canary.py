"""`penstock canary` and `penstock canaries`: a release performs a share of live work, and is judged."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.commands.release import add_from, release_of
from penstock.cli.confirmation import add_yes, confirm
from penstock.cli.parser import (
    Commands,
    add_command,
    add_json,
    add_limit,
    add_reason,
    whole_number,
)
from penstock.cli.render.tables import key_column, text, whole
from penstock.cli.render.wording import count, local_time
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.canaries import CanaryView, GuardView
    from penstock.cli.render.output import Output

DESCRIPTION = """\
Have a release perform a share of live work from the next run on: a share of the pages of one source or of
all, by a hash of their keys, or whole runs of a share of the sources. Its failures, yield, rejections,
duplicates and scores are compared with those of the project's own files. If one is worse beyond its tolerance
and chance, if it changes more records than --max-diff allows, or if an alert opens on one of its sources, it
is stopped and rolled back: what it saved is undone, and the project's own files do that work. `penstock up`
does all of this."""
EXAMPLES = """\
  penstock canary --release 3f9a52 --percent 10             10 % of the pages of all sources
  penstock canary acme.com --release 3f9a52 --percent 10    of one source
  penstock canary --release 3f9a52 --sources 5% --max-diff 20%
  penstock canary acme.com --from staging --percent 10      of what staging runs
  penstock canary 3 --stop --reason "wrong prices"          stop it and roll it back
  penstock canary 3 --full                                  it has passed: all runs by this release
  penstock canary 3 --end                                   nothing new; its records stay

The live run leaves its share of the pages, and the release fetches them when the run has ended."""
LIST = """\
Releases that perform a share of live work, or have done so: what they were given, how their rates compare
with the control, and why they were stopped. With a number, one of them in full."""
LIST_EXAMPLES = """\
  penstock canaries
  penstock canaries 3
  penstock canaries 3 --json"""
COLUMNS = (
    whole("canary"),
    "state",
    whole("release"),
    text("share", 1),
    whole("pages", 1),
    whole("control", 3),
    whole("began", 5),
    text("why", 2),
)
GUARD_COLUMNS = (
    key_column("guardrail", least=10),
    whole("canary"),
    whole("control"),
    whole("worse by", 1),
    whole("tolerance", 3),
    whole("p", 2),
    whole("crossed"),
)
RUN_COLUMNS = (
    "run",
    "source",
    whole("arm"),
    "kind",
    "state",
    whole("of run", 3),
    whole("saved", 2),
)
SHARES = {
    "--max-failures": "failures",
    "--max-rejections": "rejections",
    "--max-duplicates": "duplicates",
    "--max-quality": "quality",
    "--max-yield": "yields",
    "--max-diff": "diff",
}
WORSE = {
    "failures": "failed pages",
    "rejections": "rejected items",
    "duplicates": "records that several pages save",
    "quality": "a drop of the mean score",
    "yields": "records per page that are missing",
}


def register(commands: Commands) -> None:
    _register_canary(commands)
    listing = add_command(commands, "canaries", LIST, LIST_EXAMPLES)
    listing.add_argument(
        "canary", nargs="?", type=whole_number, metavar="CANARY", help="only this one"
    )
    add_limit(listing, 50, "canaries")
    add_json(listing)
    listing.set_defaults(run=show)


def _register_canary(commands: Commands) -> None:
    parser = add_command(commands, "canary", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "what",
        nargs="?",
        metavar="SOURCE|CANARY",
        help="a source to begin with, or the number of a canary",
    )
    parser.add_argument(
        "--release", metavar="R", help="the release, by its id or the beginning of it"
    )
    add_from(parser)
    share = parser.add_mutually_exclusive_group()
    share.add_argument("--percent", type=_percent, metavar="N", help="so many percent of the pages")
    share.add_argument(
        "--sources", type=_percent, metavar="N%", help="so many percent of the sources"
    )
    act = parser.add_mutually_exclusive_group()
    act.add_argument("--stop", action="store_true", help="stop it and roll it back")
    act.add_argument("--full", action="store_true", help="have it perform all runs of its sources")
    act.add_argument("--end", action="store_true", help="end it; its records stay")
    parser.add_argument(
        "--force", action="store_true", help="with --full: although it has not passed"
    )
    parser.add_argument(
        "--pages",
        type=whole_number,
        default=400,
        metavar="N",
        help="it passes after so many pages (400)",
    )
    parser.add_argument(
        "--min-pages", type=whole_number, default=50, metavar="N",
        help="compare from so many pages on, of both (50)",
    )  # fmt: skip
    parser.add_argument(
        "--alpha", type=float, default=0.05, metavar="P",
        help="probability that a harmless release is stopped by its guardrails (0.05)",
    )  # fmt: skip
    usual = {"failures": 2, "rejections": 5, "duplicates": 2, "quality": 2, "yields": 10}
    for flag, name in SHARES.items():
        what = (
            f"tolerate so much more: {WORSE[name]} ({usual[name]}%%)"
            if name in WORSE
            else ("stop it if it changes a larger share of the records (not asked)")
        )
        parser.add_argument(flag, dest=name, type=_share, metavar="N%", help=what)
    parser.add_argument(
        "--stop-on", dest="alerts", metavar="SEVERITY",
        help="alerts of its sources that stop it: low, medium, high (default), critical or none",
    )  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true", help="only check, and print what it would be"
    )
    add_json(parser)
    add_reason(parser)
    add_yes(parser)
    parser.set_defaults(run=run)


def _percent(text: str) -> float:
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        number = 0.0
    if not 0 < number <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: write 5% or 10")
    return number


def _share(text: str) -> float:
    """A share as a percentage; 0 tolerates nothing."""
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: write 5% or 10")
    return number / 100.0


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    is_act = args.stop or args.full or args.end
    if (args.release is None and args.source_env is None) != is_act:
        raise UsageError(
            "begin a canary with --release or --from, or name one with --stop, --full or --end",
            "penstock canaries lists them",
        )
    with opened(args) as project:
        found = _acted(project, args) if is_act else _begun(project, args)
    if args.json:
        args.out.json(found.as_json())
    else:
        _tell(found, args)
    return 0


def _begun(project: Project, args: argparse.Namespace) -> CanaryView:
    if args.force:
        raise UsageError("--force is for --full")
    if args.percent is None and args.sources is None:
        raise UsageError("a share of what? --percent 10 of the pages, or --sources 5%")
    limits = {name: getattr(args, name) for name in (*SHARES.values(), "alerts")}
    asked = {name: value for name, value in limits.items() if value is not None}
    about = {
        "source": args.what,
        "percent": args.percent,
        "source_percent": args.sources,
        "pages": args.pages,
        "min_pages": min(args.min_pages, args.pages),
        "alpha": args.alpha,
        **asked,
    }
    release = release_of(project, args, copies=not args.dry_run)
    if args.dry_run:
        return project.canaries.start(release, **about, dry_run=True, reason=args.reason)
    share = (
        f"{args.percent:g} % of the pages"
        if args.percent
        else f"{args.sources or 0:g} % of the sources"
    )
    confirm(args, f"Have release {release[:12]} perform {share} from the next run on?")
    return project.canaries.start(release, **about, reason=args.reason)


def _acted(project: Project, args: argparse.Namespace) -> CanaryView:
    if args.percent or args.sources or args.dry_run:
        raise UsageError("--percent, --sources and --dry-run are for beginning a canary")
    if args.what is None or not args.what.isascii() or not args.what.isdigit():
        raise UsageError("which canary? Its number", "penstock canaries lists them")
    if args.force and not args.full:
        raise UsageError("--force is for --full")
    number = int(args.what[:18])
    seen = project.canaries.get(number)
    if args.stop:
        confirm(args, f"Stop canary {number}, and undo what release {seen.release[:12]} has saved?")
        return project.canaries.stop(number, reason=args.reason)
    if args.full:
        confirm(args, f"Have release {seen.release[:12]} perform all runs of the canary's sources?")
        return project.canaries.widen(number, force=args.force, reason=args.reason)
    confirm(args, f"End canary {number}, and keep what it saved?")
    return project.canaries.end(number, reason=args.reason)


def show(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        if args.canary is None:
            rows = list(project.canaries.each(limit=args.limit))
        else:
            rows = [project.canaries.get(args.canary)]
    if args.json and args.canary is not None:
        args.out.json(rows[0].as_json())
    elif args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif args.canary is not None:
        _tell_whole(rows[0], args.out)
    elif rows:
        args.out.table(COLUMNS, (_row(row) for row in rows))
    else:
        args.out.line("no canaries yet: penstock canary --release R --percent 10 begins one")
    return 0


def _words(row: CanaryView) -> str:
    if row.state == "full":
        return f"all of {count(len(row.sources), 'source')}"
    share = f"{row.percent:g} %"
    if row.share == "pages":
        of = row.sources[0] if len(row.sources) == 1 else count(len(row.sources), "source")
        return f"{share} of the pages of {of}"
    return f"{share} of the sources ({', '.join(row.sources[:3])}{', …' if len(row.sources) > 3 else ''})"


def _row(row: CanaryView) -> tuple[object, ...]:
    began = local_time(row.began_at)
    pages = (row.canary_pages, row.control_pages)
    return (row.id, row.state, row.release[:12], _words(row), *pages, began, row.end_reason)


def _tell(row: CanaryView, args: argparse.Namespace) -> None:
    out: Output = args.out
    if not row.id:
        out.line(f"release {row.release[:12]} would perform {_words(row)}; nothing was begun")
        return
    told = {
        "active": f"performs {_words(row)} from the next run on",
        "full": f"performs {_words(row)} from the next run on",
        "stopping": "is stopped; it is rolled back while penstock up, or a run, is at work",
        "ended": "is ended; its records stay",
    }
    out.line(f"canary {row.id}: release {row.release[:12]} {told.get(row.state, row.state)}")
    out.line(f"how it does:  penstock canaries {row.id}")


def _tell_whole(row: CanaryView, out: Output) -> None:
    out.fields(
        [
            ("canary", row.id),
            ("state", row.state),
            ("release", row.release),
            ("share", _words(row)),
            ("pages", f"{row.canary_pages} of the canary, {row.control_pages} of the control"),
            ("passes at", count(row.limits.pages, "page")),
            ("began", f"{local_time(row.began_at)} by {row.actor}"),
            ("reason", row.reason or None),
            ("ended", None if row.ended_at is None else local_time(row.ended_at)),
            ("why", row.end_reason or None),
            ("records changed", _changed(row)),
        ]
    )
    out.line()
    _tell_guards(row, out)
    _tell_runs(row, out)


def _tell_guards(row: CanaryView, out: Output) -> None:
    if row.look is None:
        out.line(f"not compared yet: that takes {count(row.limits.min_pages, 'page')} of both")
    else:
        out.table(GUARD_COLUMNS, (_guard(each) for each in row.look.guards))


def _tell_runs(row: CanaryView, out: Output) -> None:
    if row.runs:
        out.line()
        rows = (
            (run.run, run.source, run.arm, run.kind, run.state, run.of_run or "", run.saved)
            for run in row.runs
        )
        out.table(RUN_COLUMNS, rows)


def _changed(row: CanaryView) -> str | None:
    if row.look is None or row.look.diff is None:
        return None
    most = "" if row.limits.diff is None else f", at most {row.limits.diff:.1%}"
    return f"{row.look.diff:.1%}{most}"


def _guard(each: GuardView) -> tuple[object, ...]:
    shown = ".2f" if each.guard in ("yield", "quality") else ".1%"
    rates = ["" if rate is None else f"{rate:{shown}}" for rate in (each.canary, each.control)]
    worse = f"{each.worse_by:{'.2f' if each.guard == 'quality' else '.1%'}}"
    tolerance = f"{each.tolerance:{'.2f' if each.guard == 'quality' else '.1%'}}"
    return (
        each.guard,
        *rates,
        worse,
        tolerance,
        f"{each.p:.2g}",
        "yes" if each.is_crossed else "no",
    )
