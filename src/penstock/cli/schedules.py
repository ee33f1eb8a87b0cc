"""`penstock schedules`: when sources run on schedule, and what became of their ticks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from penstock.cli.cadence import add_cadence
from penstock.cli.parser import Commands, add_command, add_json, add_limit, whole_number
from penstock.cli.tables import column, key_column, text, whole
from penstock.cli.wording import duration, iso, local_time, until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.project import Project
    from penstock.settings import ScheduleSettings
    from penstock.store.scheduling import ScheduleRow

LIST = """\
Every schedule: its policy in words, when it is due next, when it last started a run and how late, and
what became of its last tick. What is in penstock.yaml but not planned yet is planned when `penstock up`
or `penstock scheduler` starts."""
LIST_EXAMPLES = """\
  penstock schedules
  penstock schedules next --days 7
  penstock schedules explain acme.com
  penstock schedules diff"""
NEXT = """\
A calendar of what will start, by the clock of this machine: as the schedules are in penstock.yaml, from
where they stand. What is outside of a schedule's hours is marked. --svg writes a map of the hours of each
day, darker where more starts."""
NEXT_EXAMPLES = """\
  penstock schedules next
  penstock schedules next --days 30 --source acme.com
  penstock schedules next --svg starts.svg
  penstock schedules next --json"""
EXPLAIN = """\
Everything about the schedules of one source: policy, next ticks, what became of the last ones and why,
what was missed, and the promises that its configuration makes."""
EXPLAIN_EXAMPLES = """\
  penstock schedules explain acme.com
  penstock schedules explain acme.com --limit 50 --json"""
DIFF = """\
What would change if penstock.yaml were put to work now: schedules that are new, changed or taken out. A
changed schedule is planned anew, under its next version."""
DIFF_EXAMPLES = """\
  penstock schedules diff
  penstock schedules diff --json"""
HISTORY = """\
Every version that a source's schedules had, since when, and how many ticks each of them fired, missed,
skipped and was denied, as far as ticks are kept (`retention.events`)."""
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
OUTCOMES = ("fired", "joined", "missed", "skipped", "denied")
NONE = "no schedules; `schedule:` in penstock.yaml sets them"
LONGEST_DAYS = 366
# What is not due by time, or by a calendar that knows no more.
WITHOUT_TIME = {
    **dict.fromkeys(("signal", "after", "watch"), "when it happens"),
    "session": "when a newer exchange-calendars knows",
}
# A tick is overdue when nobody has looked at it for so long.
OVERDUE_S = 60.0


def register(commands: Commands) -> None:
    listing = add_command(
        commands, "schedules", "when sources run on schedule", LIST, LIST_EXAMPLES
    )
    add_json(listing)
    listing.set_defaults(run=run)
    verbs = listing.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    coming = add_command(verbs, "next", "a calendar of starts", NEXT, NEXT_EXAMPLES)
    coming.add_argument(
        "--days", type=_days, default=7, metavar="N", help="number of days from now (7)"
    )
    coming.add_argument("--source", metavar="SOURCE", help="only of this source")
    coming.add_argument("--svg", metavar="FILE", help="write a map of hours and days")
    coming.set_defaults(run=run_next)
    explaining = add_command(
        verbs, "explain", "everything about one source's", EXPLAIN, EXPLAIN_EXAMPLES
    )
    add_limit(explaining, 10, "ticks of each schedule")
    explaining.set_defaults(run=run_explain)
    differing = add_command(verbs, "diff", "the file against what runs now", DIFF, DIFF_EXAMPLES)
    differing.set_defaults(run=run_diff)
    history = add_command(verbs, "history", "the versions there were", HISTORY, HISTORY_EXAMPLES)
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
    from penstock.cli.opening import opened

    with opened(args) as project:
        now = project.connection.now()
        rows = shapes(project, project.connection.schedules(), now)
        rows += _unplanned(project, {(row["source"], row["schedule"]) for row in rows})
        rows.sort(key=lambda row: (row["source"], row["schedule"]))
        if args.json:
            args.out.json_list(
                {name: iso(value) if name.endswith("_at") else value for name, value in row.items()}
                for row in rows
            )
        elif rows:
            args.out.table(COLUMNS, (_row(row, now) for row in rows))
            for warning in dict.fromkeys(row["warning"] for row in rows if row["warning"]):
                args.out.line(warning)
        else:
            args.out.line(NONE)
    return 0


def run_next(args: argparse.Namespace) -> int:
    from penstock.cli.schedules_next import tell_next

    return tell_next(args)


def run_explain(args: argparse.Namespace) -> int:
    from penstock.cli.schedules_explain import tell_explained

    return tell_explained(args)


def run_diff(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened

    with opened(args) as project:
        found = differences(project)
    if args.json:
        args.out.json_list(found)
        return 0
    if not found:
        args.out.line("nothing: what runs now is what penstock.yaml says")
    for each in found:
        sign = {"added": "+", "changed": "~", "removed": "-"}[each["change"]]
        name = f"{sign} {each['source']} {each['schedule']}"
        if each["change"] == "changed":
            args.out.line(f"{name}: {each['before']} -> {each['after']}")
            for key in each["keys"]:
                before, after = (_said(key["key"], key[side]) for side in ("before", "after"))
                args.out.line(f"    {key['key']}: {before} -> {after}")
        else:
            args.out.line(f"{name}: {each['after'] or each['before']}")
    return 0


def run_history(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened, source_key

    with opened(args) as project:
        key = source_key(project, args.source) or ""
        source_id = project.connection.ensure_sources([key])[key]
        versions = project.connection.schedule_versions(source_id)
        counts: dict[tuple[str, int, str], int] = {
            (each.schedule, each.version, each.outcome): each.ticks
            for each in project.connection.tick_counts(source_id)
        }
    shapes = [
        {
            "source": key,
            "schedule": each.name,
            "version": each.version,
            "since": iso(each.at),
            "policy": each.words,
            "definition": _definition(each.definition),
            "actor": each.actor,
            "ticks": {name: counts.get((each.name, each.version, name), 0) for name in OUTCOMES},
        }
        for each in versions
    ]
    if args.json:
        args.out.json_list(shapes)
    elif shapes:
        since = [local_time(each.at) for each in versions]
        args.out.table(
            HISTORY_COLUMNS,
            [
                (
                    *(row["schedule"], row["version"], at, row["policy"], row["actor"]),
                    *row["ticks"].values(),
                )
                for row, at in zip(shapes, since, strict=True)
            ],
        )
    else:
        args.out.line(f"{key} never had a schedule that was put to work")
    return 0


def shapes(project: Project, rows: Sequence[ScheduleRow], now: float) -> list[dict[str, Any]]:
    """Schedules as programs read them, with their times still as numbers."""
    found = [_shape(row, now) for row in rows]
    if any(each["is_waiting"] for each in found):
        active = _active_runs(project)
        for each in found:
            each["waits_for_run"] = active.get(each["source"]) if each["is_waiting"] else None
    return found


def _active_runs(project: Project) -> dict[str, int]:
    """By source, the run that a tick may have to wait for."""
    runs = project.connection.runs(active_only=True, limit=1_000_000)
    return {row.source: row.id for row in runs if row.kind in ("full", "incremental", "probe")}


def _shape(row: ScheduleRow, now: float) -> dict[str, Any]:
    started = row.last_started_at is not None and row.last_due_at is not None
    overdue_s = max(0.0, now - row.next_due_at) if row.next_due_at is not None else 0.0
    return {
        "source": row.source,
        "schedule": row.name,
        "policy": row.words,
        "kind": row.kind,
        "version": row.version,
        "is_planned": True,
        "next_due_at": row.next_due_at,
        "hours_begin_at": _hours_begin_at(row),
        "overdue_s": round(overdue_s, 3) if overdue_s > OVERDUE_S else 0.0,
        "is_waiting": bool(row.look_at and row.next_due_at and row.look_at > row.next_due_at),
        "waits_for_run": None,
        "last_due_at": row.last_due_at,
        "last_run": row.last_run_id,
        "last_state": row.last_state,
        "lateness_s": round((row.last_started_at or 0) - (row.last_due_at or 0), 3)
        if started
        else None,
        "last_tick_at": row.tick_at,
        "last_outcome": row.tick_outcome,
        "last_reason": row.tick_reason,
        "warning": _warning(row, now),
    }


def _warning(row: ScheduleRow, now: float) -> str:
    from penstock.schedules.definition import settings_of
    from penstock.schedules.slots import calendar_warning

    return calendar_warning(settings_of(row.definition, row.name), now)


def _hours_begin_at(row: ScheduleRow) -> float | None:
    """Of a next tick that is outside its hours: when it could have started something."""
    from penstock.app.hours import outside
    from penstock.schedules.definition import settings_of

    if row.next_due_at is None:
        return None
    return outside([settings_of(row.definition, row.name)], row.next_due_at)


def outside_words(begin_at: float, now: float) -> str:
    from penstock.app.hours import NEVER

    if begin_at == NEVER:
        return "never: its hours do not come again"
    return f"not before its hours begin, {until(begin_at, now)}"


def _unplanned(project: Project, known: set[tuple[str, str]]) -> list[dict[str, Any]]:
    return [
        {
            "source": key,
            "schedule": settings.name,
            "policy": _words_now(project, key, settings),
            "kind": settings.kind,
            "version": None,
            "is_planned": False,
            "next_due_at": None,
            "hours_begin_at": None,
            "overdue_s": 0.0,
            "is_waiting": False,
            "waits_for_run": None,
            "last_due_at": None,
            "last_run": None,
            "last_state": None,
            "lateness_s": None,
            "last_tick_at": None,
            "last_outcome": None,
            "last_reason": "",
            "warning": "",
        }
        for key, settings in configured(project)
        if (key, settings.name) not in known
    ]


def configured(project: Project) -> list[tuple[str, ScheduleSettings]]:
    """Every schedule of the file, by its source."""
    return [
        (key, settings)
        for key, source in sorted(project.settings.sources.items())
        for settings in source.schedules
    ]


def _row(row: dict[str, Any], now: float) -> tuple[object, ...]:
    late = "" if row["lateness_s"] is None else duration(row["lateness_s"])
    if row["overdue_s"]:
        late = f"overdue for {duration(row['overdue_s'])}"
    outcome = row["last_outcome"] or ""
    if row["last_reason"]:
        outcome += f": {row['last_reason']}"
    return (
        *(row["source"], row["schedule"], row["policy"], next_words(row, now)),
        *(local_time(row["last_due_at"]), row["last_run"] or "", late, outcome),
    )


def next_words(row: dict[str, Any], now: float) -> str:
    if not row["is_planned"]:
        return "not planned yet"
    if row["waits_for_run"]:
        return f"due, and waits for run {row['waits_for_run']} to end"
    if row["is_waiting"]:
        return "due, and waits for others that are made up for"
    if row["next_due_at"] is None and row["warning"]:
        return "never: its calendar has ended"
    if row["next_due_at"] is None:
        return WITHOUT_TIME.get(row["kind"], "never")
    if row["hours_begin_at"] is not None:
        return outside_words(row["hours_begin_at"], now)
    return until(row["next_due_at"], now)


def differences(project: Project) -> list[dict[str, Any]]:
    """What the file says that what runs now does not, and the other way round."""
    from penstock.schedules.definition import changes, definition_of

    running = {(row.source, row.name): row for row in project.connection.schedules()}
    found: list[dict[str, Any]] = []
    for key, settings in configured(project):
        row = running.pop((key, settings.name), None)
        definition = definition_of(settings)
        if row is not None and row.definition == definition:
            continue
        before = row.definition if row is not None else ""
        found.append(
            {
                "source": key,
                "schedule": settings.name,
                "change": "added" if row is None else "changed",
                "before": row.words if row is not None else None,
                "after": _words_now(project, key, settings),
                "keys": _keys(changes(before, definition)),
            }
        )
    found += [
        {
            "source": row.source,
            "schedule": row.name,
            "change": "removed",
            "before": row.words,
            "after": None,
            "keys": _keys(changes(row.definition, "")),
        }
        for row in running.values()
    ]
    return sorted(found, key=lambda each: (each["source"], each["schedule"]))


def _keys(found: list[tuple[str, Any, Any]]) -> list[dict[str, Any]]:
    return [{"key": key, "before": before, "after": after} for key, before, after in found]


def _said(key: str, value: Any) -> str:
    import msgspec

    if value is None:
        return "as usual"
    if key in ("every", "jitter"):
        return duration(value)
    return msgspec.json.encode(value).decode()


def _definition(text: str) -> Any:
    import msgspec

    return msgspec.json.decode(text) if text else None


def _words_now(project: Project, key: str, settings: ScheduleSettings) -> str:
    from penstock.app.schedules import words_now

    return words_now(project, key, settings)
