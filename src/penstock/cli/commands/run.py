"""`penstock run`: run sources in the foreground, and end when they have ended."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command, add_reason, whole_number
from penstock.cli.render.output import Output
from penstock.cli.render.service_log import add_log_format
from penstock.errors import Refused, UsageError
from penstock.shell import command_of

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.progress import RunReport
    from penstock.app.views.runs import LeftOut, RunView, StartedMany

DESCRIPTION = """\
Run sources in the foreground, show progress, and exit when the runs have ended. A run of the source that has
not ended is continued; --new starts another one beside it. If `penstock up` is already running, it does the
work and this command shows the progress."""
EXAMPLES = """\
  penstock run acme.com
  penstock run acme.com news --reason "prices changed"
  penstock run --all --json
  penstock run acme.com --kind incremental
  penstock run acme.com --pages 5 --param category=shoes
  penstock run acme.com --kind probe   would it work? ok, degraded or failed
  penstock run acme.com --detach   only queue it, for `penstock up`

exit codes: 0 all completed, 3 any partial, 4 any failed or cancelled, 130 interrupted"""
# Those that need to be told more are known too, so that it can be said which command asks for it.
KINDS = ("full", "incremental", "probe", "stream", "backfill", "replay")


def register(commands: Commands) -> None:
    parser = add_command(commands, "run", DESCRIPTION, EXAMPLES)
    parser.add_argument("names", nargs="*", metavar="SOURCE", help="sources to run")
    parser.add_argument("--all", action="store_true", help="every source of penstock.yaml")
    parser.add_argument(
        "--kind",
        choices=KINDS,
        metavar="KIND",
        help="full: everything in scope (default); incremental: what is new or changed (default of a "
        "source with a connector); "
        "probe: one item, nothing saved; stream: until it is stopped",
    )
    parser.add_argument(
        "--new", action="store_true", help="start another run even if one has not ended"
    )
    parser.add_argument("--detach", action="store_true", help="only queue, do not wait")
    parser.add_argument(
        "--draft", action="store_true", help="create it only; `penstock start` starts it"
    )
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="override a param of the source for this run; VALUE is read as YAML (repeatable)",
    )
    parser.add_argument(
        "--pages",
        type=whole_number,
        metavar="N",
        help="at most N pages, to try a pipeline; the run is marked as cut",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one object per line")
    add_log_format(parser)
    add_reason(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    if bool(args.names) == args.all:
        raise UsageError(
            "name the sources, or say --all" if args.all else "run what? A SOURCE, or --all",
            "penstock sources lists them",
        )
    with opened(args) as project:
        found = _started(project, args)
        runs = [each.run for each in found.runs if each.run is not None]
        for started in found.runs:
            if not started.is_new and started.run is not None:
                note_going_on(args.out, started.run, " (--new: another)")
        if args.detach or args.draft:
            tell_queued(project, runs, args)
            return exits.DONE
        return work_on(project, [each.id for each in runs], args)


def _started(project: Project, args: argparse.Namespace) -> StartedMany:
    from penstock.app.views.runs import NoneCanRun

    left_out: list[LeftOut] = []
    try:
        found = project.runs.start_many(
            None if args.all else args.names,
            args.kind,
            new=args.new,
            draft=args.draft,
            awaited=not args.detach and not args.draft,
            **_asked(args),
            reason=args.reason,
        )
        left_out = found.left_out
    except NoneCanRun as refused:
        left_out = refused.left_out
        raise
    finally:
        for each in left_out:
            args.out.note(_left_out(each))
    return found


def _left_out(each: LeftOut) -> str:
    if isinstance(each.error, Refused):
        is_degraded = each.error.code == "source_degraded"
        command = f"penstock run {each.source} --kind probe"
        command = command if is_degraded else command_of(each.error.remedy)
        return f"left out: {each.error.message}; {command}".removesuffix("; ")
    return f"left out: {each.source}: {each.error.message}"


def note_going_on(out: Output, run: RunView, more: str = "") -> None:
    """Somebody who asks for a run must know that it is an old one."""
    out.note(f"run {run.id} of {run.source} has not ended yet; continuing it{more}")


def _asked(args: argparse.Namespace) -> dict[str, Any]:
    if args.pages == 0:
        raise UsageError("--pages 0 leaves nothing to run", "the minimum is --pages 1")
    is_by_hand = sys.stdin is not None and sys.stdin.isatty()
    return {"params": dict(map(param, args.param)), "pages": args.pages, "by_hand": is_by_hand}


def param(text: str, flag: str = "--param") -> tuple[str, Any]:
    import msgspec
    import yaml

    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"{flag} {text!r} is not NAME=VALUE", f"{flag} depth=2")
    try:
        # A day is text, as everything that JSON does not have.
        return name, msgspec.to_builtins(yaml.safe_load(value))
    except yaml.YAMLError:
        raise UsageError(
            f"{flag} {name}: its value is not YAML", "quote it: name='\"text\"'"
        ) from None


def work_on(project: Project, run_ids: list[int], args: argparse.Namespace) -> int:
    """Work until these runs have ended, with progress, and answer with the command's exit code."""
    from penstock.app.run_performer import Interrupted
    from penstock.cli.commands.service import showing_progress

    out: Output = args.out
    try:
        with showing_progress(out) as (show, tell):
            reports = project.runs.finish(run_ids, on_progress=show, tell=tell)
    except Interrupted as interrupted:
        _tell(project, interrupted.reports, args)
        _tell_interrupted(interrupted.reports, out)
        return exits.INTERRUPTED
    code = exits.of_runs([report.state for report in reports])
    _tell(project, reports, args)
    return code


def _tell(project: Project, reports: list[RunReport], args: argparse.Namespace) -> None:
    out: Output = args.out
    if args.json:
        for report in reports:
            out.json(report.as_json())
        return
    from penstock.cli.commands.runs import COUNTED, COUNTED_COLUMNS
    from penstock.cli.render.first_errors import tell_first_errors
    from penstock.cli.render.wording import duration

    out.table(
        ("run", "source", "state", *COUNTED_COLUMNS, "took"),
        [
            (
                *(str(report.run), report.source, report.state),
                *(report.counts[name] for name in COUNTED),
                duration(report.seconds),
            )
            for report in reports
        ],
    )
    for report in reports:
        if report.end_reason:
            out.line(f"run {report.run} of {report.source} ({report.kind}): {report.end_reason}")
        elif report.counts["pages_unchanged"]:
            unchanged = report.counts["pages_unchanged"]
            out.line(f"run {report.run} skipped {unchanged:,} unchanged pages")
        if report.counts["quarantined"]:
            out.line(f"run {report.run} of {report.source} has jobs in quarantine:")
            tell_first_errors(project, report.run, out)


def _tell_interrupted(reports: list[RunReport], out: Output) -> None:
    left = [
        str(report.run) for report in reports if report.state in ("queued", "running", "paused")
    ]
    runs = f"run {left[0]} stays" if len(left) == 1 else f"runs {', '.join(left)} stay"
    out.error(
        f"interrupted; nothing is lost, {runs} queued",
        "penstock up --until-idle finishes what is left; so does this command, run again",
    )


def tell_queued(project: Project, runs: list[RunView], args: argparse.Namespace) -> None:
    """What was queued, and that somebody has to work on it."""
    out: Output = args.out
    for run in runs:
        if args.json:
            out.json(project.runs.report(run.id).as_json())
        else:
            begin = f"; penstock start {run.id}" if run.state == "draft" else ""
            out.line(f"run {run.id} of {run.source} is {run.state}{begin}")
    if not args.json and not args.draft and not project.overview().workers:
        out.note("No workers are running. Start one: penstock up")
