"""`penstock run`: run sources in the foreground, and end when they have ended."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from penstock.cli import exits
from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command, add_reason, whole_number
from penstock.errors import PipelineError, Refused, UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.engine.foreground import RunReport
    from penstock.project.starting import Asked
    from penstock.store.rows import RunRow, SourceRow

DESCRIPTION = """\
Run sources in the foreground with progress, and end when they have ended. A run of the source that was
interrupted goes on where it was; --new starts another one beside it. If `penstock up` works on the
project already, it does the work and this shows it."""
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
# Of one source, and of all together: its newest active runs are looked through.
SOME, MANY = 20, 1_000_000
KINDS = ("full", "incremental", "probe", "stream", "backfill", "replay")


def register(commands: Commands) -> None:
    parser = add_command(commands, "run", "run sources in the foreground", DESCRIPTION, EXAMPLES)
    parser.add_argument("names", nargs="*", metavar="SOURCE", help="what to run")
    parser.add_argument("--all", action="store_true", help="every source of penstock.yaml")
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="full",
        metavar="KIND",
        help="full: everything in scope (default); incremental: what is new or changed; "
        "probe: one item, nothing saved; stream: until it is stopped",
    )
    parser.add_argument("--new", action="store_true", help="even if a run has not ended yet")
    parser.add_argument("--detach", action="store_true", help="only queue, do not wait")
    parser.add_argument(
        "--draft", action="store_true", help="only make it; `penstock start` lets it begin"
    )
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="over the source's params, for this run; a VALUE is read as YAML (repeatable)",
    )
    parser.add_argument(
        "--pages",
        type=whole_number,
        metavar="N",
        help="at most N pages, to try a pipeline; the run says that it was cut",
    )
    parser.add_argument("--json", action="store_true", help="an object per run, one to a line")
    add_reason(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened

    with opened(args) as project:
        keys = _well(project, _keys(project, args), args)
        unfinished = _unfinished(project, keys, args)
        paused = _paused(project)
        # All is checked before anything is started: a wrong second source must not start the first.
        for key, row in unfinished.items():
            if not args.all:
                project.refuse_run(key, args.kind)
                _refuse_pipeline(project, key, args.kind)
            if not args.detach and not args.draft:
                _refuse_paused(key, row, paused.get(key))
                _refuse_held(project, key)
        runs = [_begun(project, key, row, args) for key, row in unfinished.items()]
        if args.detach or args.draft:
            _tell_queued(project, runs, args)
            return exits.DONE
        return _work(project, [row.id for row in runs], args)


def _keys(project: Project, args: argparse.Namespace) -> list[str]:
    """What to run: each source once, however often and in whatever spelling it was named."""
    if bool(args.names) == args.all:
        raise UsageError(
            "name the sources, or say --all" if args.all else "run what? A SOURCE, or --all",
            "penstock sources lists them",
        )
    if args.all and not project.settings.sources:
        raise UsageError(f"{project.settings.file.name} has no sources")
    names = list(project.settings.sources) if args.all else args.names
    return list(dict.fromkeys(project.source(name).key for name in names))


def _well(project: Project, keys: list[str], args: argparse.Namespace) -> list[str]:
    """Of all sources, those that may run: one that may not does not keep the others from it."""
    if not args.all:
        return keys
    well = []
    for key in keys:
        if project.source(key).unset:
            args.out.note(f"left out: {key}: {project.source(key).unset[0].name} is not set")
            continue
        project.graph(project.source(key))
        try:
            project.refuse_run(key, args.kind)
            _refuse_pipeline(project, key, args.kind)
        except Refused as refused:
            args.out.note(f"left out: {refused.message}; penstock run {key} --kind probe")
        except PipelineError as error:
            args.out.note(f"left out: {key}: {error.message}")
        else:
            well.append(key)
    if not well:
        raise Refused(
            f"no source can have a run of kind {args.kind} now",
            "penstock run --all --kind probe; penstock sources says why not",
        )
    return well


def _refuse_pipeline(project: Project, key: str, kind: str) -> None:
    """A pipeline that has nothing to do in a run of this kind says so."""
    from penstock.jobs.run import RunKind

    source = project.source(key)
    project.graph(source).plan(source.priority, RunKind(kind))


def _unfinished(
    project: Project, keys: list[str], args: argparse.Namespace
) -> dict[str, RunRow | None]:
    """For each source the run to go on with: a second one beside it would do everything twice."""
    from penstock.cli.opening import source_key

    found: dict[str, RunRow | None] = dict.fromkeys(keys)
    if args.new or args.draft:
        return found
    of = (None,) if args.all else (source_key(project, key) for key in keys)
    limit = MANY if args.all else SOME
    for row in (row for key in of for row in project.store.runs(key, True, limit)):
        if row.kind == args.kind and row.source in found:
            found[row.source] = found[row.source] or row
    return found


def _paused(project: Project) -> dict[str, SourceRow]:
    return {each.key: each for each in project.store.sources() if each.paused_at is not None}


def _refuse_paused(key: str, row: RunRow | None, source: SourceRow | None) -> None:
    if row is not None and row.state == "paused":
        raise Refused(f"run {row.id} of {key} is paused", f"penstock resume {row.id}")
    if source is not None:
        why = f": {source.pause_reason}" if source.pause_reason else ""
        raise Refused(f"{key} is paused{why}", f"penstock resume {key}")


def _refuse_held(project: Project, key: str) -> None:
    held = next((row for row in project.store.holds() if row.scope in ("", key)), None)
    if held is not None:
        what = held.scope or "everything"
        why = f": {held.reason}" if held.reason else ""
        raise Refused(
            f"{what} is held by {held.actor}{why}",
            f"{f'penstock unhold {held.scope}'.strip()}; --detach queues it for later",
        )


def _begun(project: Project, key: str, row: RunRow | None, args: argparse.Namespace) -> RunRow:
    if row is None and (args.new or args.draft):
        return project.start_run(
            key, args.kind, reason=args.reason, is_draft=args.draft, asked=_asked(args)
        )
    if row is None:
        row, is_new = project.start_or_join(key, args.kind, reason=args.reason, asked=_asked(args))
        if is_new:
            return row
    if args.param or args.pages is not None:
        raise Refused(
            f"run {row.id} of {key} has not ended yet, and was not asked for with these",
            "--new starts another run beside it",
        )
    args.out.note(f"run {row.id} of {key} has not ended yet; going on with it (--new: another)")
    return row


def _asked(args: argparse.Namespace) -> Asked:
    from penstock.project.starting import Asked

    if args.pages == 0:
        raise UsageError("--pages 0 leaves nothing to run", "--pages 1 is the least")
    is_by_hand = sys.stdin is not None and sys.stdin.isatty()
    return Asked(dict(map(_param, args.param)), args.pages, is_by_hand)


def _param(text: str) -> tuple[str, Any]:
    import msgspec
    import yaml

    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"--param {text!r} is not NAME=VALUE", "--param depth=2")
    try:
        # A day is text, as everything that JSON does not have.
        return name, msgspec.to_builtins(yaml.safe_load(value))
    except yaml.YAMLError:
        raise UsageError(
            f"--param {name}: its value is not YAML", "quote it: name='\"text\"'"
        ) from None


def _work(project: Project, run_ids: list[int], args: argparse.Namespace) -> int:
    from penstock.cli.working import showing_progress
    from penstock.engine.foreground import Interrupted, run_foreground

    out: Output = args.out
    try:
        with showing_progress(out) as (show, tell):
            reports = run_foreground(project, run_ids, show, tell)
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
            out.json(dataclasses.asdict(report))
        return
    from penstock.cli.first_errors import tell_first_errors
    from penstock.cli.runs import COUNTED, COUNTED_COLUMNS
    from penstock.cli.wording import duration

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
            out.line(f"run {report.run} left {unchanged:,} of its pages alone: unchanged")
        if report.counts["quarantined"]:
            out.line(f"run {report.run} of {report.source} could not do everything:")
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


def _tell_queued(project: Project, runs: list[RunRow], args: argparse.Namespace) -> None:
    from penstock.engine.foreground import report

    out: Output = args.out
    for row in runs:
        if args.json:
            out.json(dataclasses.asdict(report(row, project.store.now())))
        else:
            begin = f"; penstock start {row.id}" if row.state == "draft" else ""
            out.line(f"run {row.id} of {row.source} is {row.state}{begin}")
    if not args.json and not args.draft and not project.store.overview().workers:
        out.note("nobody works now: penstock up --until-idle")
