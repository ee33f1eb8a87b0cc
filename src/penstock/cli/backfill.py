"""`penstock backfill`: fetch a source's history, window by window."""

from __future__ import annotations

import argparse
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.cli import exits
from penstock.cli.asking import add_yes, confirm
from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command, add_reason
from penstock.cli.wording import count, duration
from penstock.errors import nearest

if TYPE_CHECKING:
    from penstock.jobs.run import RunOptions
    from penstock.project import Project
    from penstock.project.backfills import Estimate, Missing
    from penstock.settings import SourceSettings
    from penstock.store.rows import RunRow
    from penstock.store.store import Store

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
RECENT_RUNS = 50
SHOWN_GAPS = 10


def register(commands: Commands) -> None:
    parser = add_command(commands, "backfill", "fetch a source's history", DESCRIPTION, EXAMPLES)
    parser.add_argument("source", metavar="SOURCE", help="the source")
    parser.add_argument("--from", dest="start", required=True, metavar="T", help="a day or a time")
    parser.add_argument("--to", dest="end", required=True, metavar="T", help="a day or a time")
    parser.add_argument(
        "--partition",
        dest="partitions",
        action="append",
        default=[],
        metavar="P",
        help="only this partition; repeatable (all of the source's)",
    )
    parser.add_argument("--window", metavar="1d", help="how long a unit is (the source's)")
    parser.add_argument("--missing", action="store_true", help="only what is not ingested yet")
    parser.add_argument("--plan", action="store_true", help="only print what it would take")
    parser.add_argument(
        "--new", action="store_true", help="start another even if the same one has not ended"
    )
    parser.add_argument("--detach", action="store_true", help="only queue, do not wait")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_yes(parser)
    add_reason(parser)
    parser.set_defaults(run=run, draft=False)


def run(args: argparse.Namespace) -> int:
    from penstock.app.refusals import Stopped
    from penstock.app.unfinished import unfinished_backfill
    from penstock.cli.opening import opened
    from penstock.cli.run import note_going_on, tell_queued, work_on

    with opened(args) as project:
        source = project.source(args.source)
        options = project.backfill_options(
            source.key,
            args.start,
            args.end,
            args.partitions,
            missing=args.missing,
            window_s=_window_s(args.window),
        )
        _note_new_partitions(args, source)
        if args.plan:
            _tell_plan(args, source, _planned(project, source, options))
            return exits.DONE
        row = None if args.new else unfinished_backfill(project, source.key, options)
        if row is not None:
            note_going_on(args.out, project.runs.get(row.id))
        if not args.detach:
            Stopped(project.connection).refuse(source.key, row)
        if row is None:
            confirm(args, _question(source, _planned(project, source, options)))
            row = project.start_backfill(source.key, options, reason=args.reason)
            if row.options.reconciles is not None:
                before, windows = row.options.reconciles, row.options.reconciled_windows
                what = "this" if windows is None else f"{count(windows, 'window')} of this"
                args.out.note(f"run {before} has ingested {what} before: run {row.id} reconciles")
        if args.detach:
            tell_queued(project, [project.runs.get(row.id)], args)
            return exits.DONE
        return work_on(project, [row.id], args)


def _note_new_partitions(args: argparse.Namespace, source: SourceSettings) -> None:
    """One may be fetched before it is configured; it may also be mistyped."""
    known = source.backfill.partitions if source.backfill else ()
    for name in dict.fromkeys(args.partitions):
        if name not in known and known != ("default",):
            hint = nearest(name, known)
            args.out.note(f"{source.key} has no partition {name!r} in penstock.yaml; {hint}")


def _window_s(text: str | None) -> float | None:
    from penstock.errors import ConfigError, UsageError
    from penstock.settings import parse_duration

    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except ConfigError as error:
        raise UsageError(f"--window: {error.message}") from None
    if seconds < 1:
        raise UsageError("--window must be at least 1s")
    return seconds


@dataclass(frozen=True, slots=True)
class _Plan:
    options: RunOptions
    estimate: Estimate
    expected: int
    missing: Missing | None = None


def _planned(project: Project, source: SourceSettings, options: RunOptions) -> _Plan:
    """What it would take, by what is known; looking makes no database."""
    from penstock.jobs.windows import windows_of
    from penstock.project.backfills import estimate, missing

    windows = windows_of(options)
    expected = units = windows.expected()
    runs: list[RunRow] = []
    gaps: Missing | None = None
    store = _existing_store(project)
    if store is not None:
        known = {row.key: row.id for row in store.sources()}
        if source.key in known:
            runs = store.runs(source.key, limit=RECENT_RUNS)
            if options.is_missing_only:
                gaps = missing(store, known[source.key], windows)
                units = gaps.units
    return _Plan(options, estimate(source, units, runs, project.clock.now()), expected, gaps)


def _existing_store(project: Project) -> Store | None:
    """The project's store, unless it would have to be made, or brought up to date, to be read."""
    settings = project.settings
    if not settings.is_on_postgres and not settings.store_file.exists():
        return None
    with closing(project.open_schema()) as schema:
        if schema.plan().state.number < schema.schema:
            return None
    return project.connection


def _question(source: SourceSettings, plan: _Plan) -> str:
    told = plan.estimate
    calls = count(round(told.calls), "call")
    takes = f"{calls}, about {duration(told.seconds)} ({told.basis})"
    return f"Fetch {count(told.units, 'unit')} of {source.key}: {takes}?"


def _tell_plan(args: argparse.Namespace, source: SourceSettings, plan: _Plan) -> None:
    from penstock.cli.run_words import range_of

    shape = _plan_shape(source, plan)
    out: Output = args.out
    if args.json:
        out.json(shape)
        return
    names = shape["partitions"]
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
    covered = shape["expected"] - shape["units"] if plan.options.is_missing_only else 0
    window = duration(shape["window_s"])
    out.fields(
        [
            ("source", source.key),
            ("range", range_of(plan.options)),
            ("window", f"{window}, {plan.options.calendar}"),
            ("partitions", f"{len(names):,}: {shown}"),
            ("units", f"{shape['units']:,}"),
            ("ingested", f"{covered:,} of {shape['expected']:,}" if covered > 0 else ""),
            ("calls", f"{shape['calls']:,}"),
            ("time", f"about {duration(shape['seconds'])} ({shape['basis']})"),
            *(("budget", line) for line in shape["budget"]),
            *(("missing", line) for line in _gap_lines(plan)),
        ]
    )
    out.line("nothing was changed; without --plan it is started")


def _plan_shape(source: SourceSettings, plan: _Plan) -> dict[str, Any]:
    from penstock.cli.wording import iso

    options, told = plan.options, plan.estimate
    return {
        "source": source.key,
        "from": iso(options.start_at),
        "to": iso(options.end_at),
        "window_s": options.window_s,
        "partitions": list(options.partitions),
        "expected": plan.expected,
        "units": told.units,
        "calls": round(told.calls),
        "seconds": round(told.seconds, 1),
        "basis": told.basis,
        "budget": _budget(source, told),
        "missing": [
            {"partition": gap.partition, "from": iso(gap.start_at), "to": iso(gap.end_at)}
            for gap in (plan.missing.stretches if plan.missing else ())
        ],
    }


def _gap_lines(plan: _Plan) -> list[str]:
    """By the backfill's clock, as its range is: a day of another zone would be two halves here."""
    from penstock.cli.run_words import stretch

    missing = plan.missing.stretches if plan.missing else []
    lines = [
        f"{gap.partition}: {stretch(gap.start_at, gap.end_at, plan.options.timezone)}"
        for gap in missing[:SHOWN_GAPS]
    ]
    more = len(missing) - SHOWN_GAPS
    return [*lines, f"and {count(more, 'stretch', 'stretches')} more"] if more > 0 else lines


def _budget(source: SourceSettings, told: Estimate) -> list[str]:
    """What the source's own budget makes of it."""
    needed = {"requests": told.calls, "seconds": told.seconds}
    if source.cost.request is not None:
        needed["money"] = told.calls * source.cost.request
    lines = []
    for bound in source.budget.bounds:
        if bound.measure not in needed:
            continue
        share = needed[bound.measure] / bound.amount
        what = f"{needed[bound.measure]:,.10g} of {bound.amount:,.10g} {bound.measure}"
        if bound.period == "run":
            enough = "enough" if share <= 1 else "not enough: the run would end partial"
            lines.append(f"{what} a run: {enough}")
        else:
            periods = max(1, -(-needed[bound.measure] // bound.amount))
            lines.append(f"{what} a {bound.period}: at least {count(int(periods), bound.period)}")
    return lines
