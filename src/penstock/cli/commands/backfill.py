"""`penstock backfill`: fetch a source's history, window by window."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from penstock.cli import exits
from penstock.cli.confirmation import add_yes, confirm
from penstock.cli.parser import Commands, add_command, add_reason
from penstock.cli.render.output import Output
from penstock.cli.render.wording import count, duration

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.backfills import BackfillPlan
    from penstock.app.views.runs import RunView

DESCRIPTION = """\
Fetch a range of a source's history, in units of one window per partition. A backfill is planned as it goes,
has its own share of the source's concurrency, and never moves live checkpoints. To continue an interrupted
backfill, run the same command again. --missing fetches only what is not recorded as ingested; over a range
that is already ingested, all or in part, the run is a reconciliation.

A day lasts from midnight to midnight in the backfill's timezone, and the day of --to is included."""
EXAMPLES = """\
  penstock backfill prices --from 2024-01-01 --to 2024-12-31 --plan
  penstock backfill prices --from 2024-01-01 --to 2024-12-31 --partition AAPL --window 7d
  penstock backfill prices --from 2024-01-01 --to 2024-12-31 --missing --yes --detach

exit codes: 0 completed, 3 partial, 4 failed or cancelled, 130 interrupted"""
SHOWN_GAPS = 10


def register(commands: Commands) -> None:
    parser = add_command(commands, "backfill", DESCRIPTION, EXAMPLES)
    parser.add_argument("source", metavar="SOURCE", help="the source")
    parser.add_argument(
        "--from", dest="start", required=True, metavar="T", help="start: a day or a time"
    )
    parser.add_argument("--to", dest="end", required=True, metavar="T", help="end: a day or a time")
    parser.add_argument(
        "--partition",
        dest="partitions",
        action="append",
        default=[],
        metavar="P",
        help="only this partition; repeatable (all of the source's)",
    )
    parser.add_argument("--window", metavar="1d", help="length of a unit (the source's)")
    parser.add_argument(
        "--missing", action="store_true", help="only what is not recorded as ingested"
    )
    parser.add_argument(
        "--plan", action="store_true", help="print the plan and an estimate, start nothing"
    )
    parser.add_argument(
        "--new", action="store_true", help="start another even if the same one has not ended"
    )
    parser.add_argument("--detach", action="store_true", help="only queue, do not wait")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_yes(parser)
    add_reason(parser)
    parser.set_defaults(run=run, draft=False)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.commands.run import tell_queued, work_on
    from penstock.cli.lookup import opened

    with opened(args) as project:
        if args.plan:
            plan = project.backfills.plan(**_range(args))
            _note_unknown_partitions(project, args)
            _tell_plan(args, plan)
            return exits.DONE
        found = _started(project, args)
        if args.detach:
            tell_queued(project, [found], args)
            return exits.DONE
        return work_on(project, [found.id], args)


def _started(project: Project, args: argparse.Namespace) -> RunView:
    """The run of this backfill: one that has not ended, or a new one, if the operator agrees."""
    from penstock.cli.commands.run import note_going_on

    wanted = {**_range(args), "new": args.new, "awaited": not args.detach}
    known = project.backfills.start(**wanted, dry_run=True).run
    _note_unknown_partitions(project, args)
    if known is not None:
        note_going_on(args.out, known)
        return known
    confirm(args, _question(project.backfills.plan(**_range(args))))
    run = project.backfills.start(**wanted, reason=args.reason).run
    assert run is not None  # noqa: S101
    _note_reconciling(args.out, run)
    return run


def _range(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "source": args.source,
        "start": args.start,
        "end": args.end,
        "partitions": args.partitions,
        "missing": args.missing,
        "window_s": _window_s(args.window),
    }


def _window_s(text: str | None) -> float | None:
    from penstock.app.moments import length
    from penstock.errors import UsageError

    if text is None:
        return None
    seconds = length("--window", text)
    if seconds < 1:
        raise UsageError("--window must be at least 1s")
    return seconds


def _note_unknown_partitions(project: Project, args: argparse.Namespace) -> None:
    found = project.backfills.unknown_partitions(args.source, args.partitions)
    key = project.source(args.source).key
    for name, hint in found.items():
        args.out.note(f"{key} has no partition {name!r} in penstock.yaml; {hint}")


def _note_reconciling(out: Output, run: RunView) -> None:
    before, windows = run.options.reconciles, run.options.reconciled_windows
    if before is not None:
        what = "this" if windows is None else f"{count(windows, 'window')} of this"
        out.note(f"run {before} has ingested {what} before: run {run.id} reconciles")


def _question(plan: BackfillPlan) -> str:
    takes = f"{count(plan.calls, 'call')}, about {duration(plan.seconds)} ({plan.basis})"
    return f"Fetch {count(plan.units, 'unit')} of {plan.source}: {takes}?"


def _tell_plan(args: argparse.Namespace, plan: BackfillPlan) -> None:
    from penstock.cli.render.run_words import range_of

    out: Output = args.out
    if args.json:
        out.json(plan.as_json())
        return
    names = plan.partitions
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
    covered = plan.expected - plan.units if plan.options.is_missing_only else 0
    out.fields(
        [
            ("source", plan.source),
            ("range", range_of(plan.options)),
            ("window", f"{duration(plan.window_s)}, {plan.options.calendar}"),
            ("partitions", f"{len(names):,}: {shown}"),
            ("units", f"{plan.units:,}"),
            ("ingested", f"{covered:,} of {plan.expected:,}" if covered > 0 else ""),
            ("calls", f"{plan.calls:,}"),
            ("time", f"about {duration(plan.seconds)} ({plan.basis})"),
            *(("budget", line) for line in plan.budget),
            *(("missing", line) for line in _gap_lines(plan)),
        ]
    )
    out.line("Nothing was started. Run the command without --plan to start it")


def _gap_lines(plan: BackfillPlan) -> list[str]:
    """By the backfill's clock, as its range is: a day of another zone would be two halves here."""
    from penstock.cli.render.run_words import stretch

    lines = [
        f"{gap.partition}: {stretch(gap.start_at, gap.end_at, plan.options.timezone)}"
        for gap in plan.missing[:SHOWN_GAPS]
    ]
    more = len(plan.missing) - SHOWN_GAPS
    return [*lines, f"and {count(more, 'more gap')}"] if more > 0 else lines
