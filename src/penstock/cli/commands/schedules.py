"""`penstock schedules`: when sources run on schedule, and the outcome of their ticks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from penstock.cli.commands.cadence import add_cadence
from penstock.cli.parser import Commands, add_command, add_json, add_limit, add_verb, whole_number
from penstock.cli.render.tables import column, key_column, text, whole
from penstock.cli.render.wording import duration, local_time, until

if TYPE_CHECKING:
    from penstock.app.views.schedules import ScheduleChange, ScheduleVersionView, ScheduleView

LIST = """\
Every schedule: its policy in words, when it is due next, when it last started a run and how late, and
the outcome of its last tick. A schedule that was added to penstock.yaml is planned when `penstock up` or
`penstock scheduler` starts."""
LIST_EXAMPLES = """\
  penstock schedules
  penstock schedules next --days 7
  penstock schedules explain acme.com
  penstock schedules diff"""
NEXT = """\
A calendar of the runs that the schedules of penstock.yaml will start, in this machine's time zone. Ticks
outside a schedule's hours start nothing and are marked. --svg writes a map of the hours of each day, darker
where more runs start."""
NEXT_EXAMPLES = """\
  penstock schedules next
  penstock schedules next --days 30 --source acme.com
  penstock schedules next --svg starts.svg
  penstock schedules next --json"""
EXPLAIN = """\
Everything about the schedules of one source: policy, next ticks, the last ticks with outcome and reason,
missed ticks, and its service levels (freshness, deadline, schema_freshness)."""
EXPLAIN_EXAMPLES = """\
  penstock schedules explain acme.com
  penstock schedules explain acme.com --limit 50 --json"""
DIFF = """\
Compare penstock.yaml with the schedules in force: what is added, changed or removed when `penstock up` or
`penstock scheduler` starts next. A changed schedule gets the next version and is planned from then."""
DIFF_EXAMPLES = """\
  penstock schedules diff
  penstock schedules diff --json"""
HISTORY = """\
Every version of a source's schedules: since when, who changed it, and how many of its ticks fired, joined a
run, or were missed, skipped or denied. Ticks are kept for `retention.events`."""
HISTORY_EXAMPLES = """\
  penstock schedules history acme.com
  penstock schedules history acme.com --json"""
COLUMNS = (
    *(
        "source",
        key_column("schedule", 1, 8),
        text("policy", 1),
        text("next", 0, 12),
        whole("last", 4),
    ),
    *(column("run", 3), whole("late", 5), column("outcome", 2)),
)
HISTORY_COLUMNS = (
    *(key_column("schedule", least=8), whole("version"), "since", text("policy", 1), text("by", 6)),
    *(whole("fired", 1), whole("joined", 4), whole("missed", 2), whole("skipped", 3)),
    whole("denied", 3),
)
NONE = "No schedules. Add `schedule:` to a source in penstock.yaml"
LONGEST_DAYS = 366
# What is not due by time, or by a calendar that knows no more.
WITHOUT_TIME = {
    **dict.fromkeys(("signal", "after", "watch"), "when it happens"),
    "session": "unknown; install a newer exchange-calendars",
}
SIGNS = {"added": "+", "changed": "~", "removed": "-"}


def register(commands: Commands) -> None:
    listing = add_command(commands, "schedules", LIST, LIST_EXAMPLES)
    add_json(listing)
    listing.set_defaults(run=run)
    verbs = listing.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    coming = add_verb(verbs, "next", "a calendar of what will start", NEXT, NEXT_EXAMPLES)
    coming.add_argument(
        "--days", type=_days, default=7, metavar="N", help="number of days from now (7)"
    )
    coming.add_argument("--source", metavar="SOURCE", help="only this source")
    coming.add_argument("--svg", metavar="FILE", help="write a map of hours and days")
    coming.set_defaults(run=run_next)
    explaining = add_verb(
        verbs, "explain", "explain one source's schedules", EXPLAIN, EXPLAIN_EXAMPLES
    )
    add_limit(explaining, 10, "ticks of each schedule")
    explaining.set_defaults(run=run_explain)
    differing = add_verb(
        verbs, "diff", "compare penstock.yaml with the schedules in force", DIFF, DIFF_EXAMPLES
    )
    differing.set_defaults(run=run_diff)
    history = add_verb(
        verbs, "history", "versions of a source's schedules", HISTORY, HISTORY_EXAMPLES
    )
    history.set_defaults(run=run_history)
    for parser in (explaining, history):
        parser.add_argument("source", metavar="SOURCE")
    for parser in (coming, explaining, differing, history):
        add_json(parser)
    add_cadence(verbs)


def _days(text: str) -> int:
    days = whole_number(text)
    if days > LONGEST_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is more than {LONGEST_DAYS} days")
    return days


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        now = project.now()
        rows = list(project.schedules.each())
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif rows:
        args.out.table(COLUMNS, (_row(row, now) for row in rows))
        for warning in dict.fromkeys(row.warning for row in rows if row.warning):
            args.out.line(warning)
    else:
        args.out.line(NONE)
    return 0


def run_next(args: argparse.Namespace) -> int:
    from penstock.cli.commands.schedules_next import tell_next

    return tell_next(args)


def run_explain(args: argparse.Namespace) -> int:
    from penstock.cli.commands.schedules_explain import tell_explained

    return tell_explained(args)


def run_diff(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.schedules.differences()
    if args.json:
        args.out.json_list(each.as_json() for each in found)
        return 0
    if not found:
        args.out.line("nothing to change: the schedules in force are those of penstock.yaml")
    for each in found:
        for line in _change(each):
            args.out.line(line)
    return 0


def _change(each: ScheduleChange) -> list[str]:
    name = f"{SIGNS[each.change]} {each.source} {each.name}"
    if each.change != "changed":
        return [f"{name}: {each.after or each.before}"]
    keys = [
        f"    {key.key}: {_said(key.key, key.before)} -> {_said(key.key, key.after)}"
        for key in each.keys
    ]
    return [f"{name}: {each.before} -> {each.after}", *keys]


def _said(key: str, value: Any) -> str:
    import msgspec

    if value is None:
        return "default"
    if key in ("every", "jitter"):
        return duration(value)
    return msgspec.json.encode(value).decode()


def run_history(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened, source_key

    with opened(args) as project:
        key = source_key(project, args.source)
        versions = list(project.schedules.each_version(args.source))
    if args.json:
        args.out.json_list(each.as_json() for each in versions)
    elif versions:
        args.out.table(HISTORY_COLUMNS, (_version(each) for each in versions))
    else:
        args.out.line(f"{key} has never had a schedule in force")
    return 0


def _version(row: ScheduleVersionView) -> tuple[object, ...]:
    since = local_time(row.since)
    return (row.name, row.version, since, row.policy, row.actor, *row.ticks.values())


def _row(row: ScheduleView, now: float) -> tuple[object, ...]:
    late = "" if row.lateness_s is None else duration(row.lateness_s)
    if row.overdue_s:
        late = f"overdue for {duration(row.overdue_s)}"
    outcome = row.last_outcome or ""
    if row.last_reason:
        outcome += f": {row.last_reason}"
    return (
        *(row.source, row.name, row.policy, next_words(row, now)),
        *(local_time(row.last_due_at), row.last_run_id or "", late, outcome),
    )


def next_words(row: ScheduleView, now: float) -> str:
    if not row.is_planned:
        return "not planned yet"
    if row.waits_for_run:
        return f"due, and waits for run {row.waits_for_run} to end"
    if row.is_waiting:
        return "due, and waits for missed ticks before it"
    if row.next_due_at is None and row.warning:
        return "never: its calendar has ended"
    if row.next_due_at is None:
        return WITHOUT_TIME.get(row.kind, "never")
    if row.hours_begin_at is not None:
        return outside_words(row.hours_begin_at, now)
    return until(row.next_due_at, now)


def outside_words(begin_at: float, now: float) -> str:
    from penstock.app.hours import NEVER

    if begin_at == NEVER:
        return "never: its hours do not come again"
    return f"not before its hours begin, {until(begin_at, now)}"
