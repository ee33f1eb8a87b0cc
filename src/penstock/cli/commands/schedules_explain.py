"""`penstock schedules explain`: why a source did or did not run when it was due."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.commands.cadence import class_words
from penstock.cli.commands.schedules import next_words
from penstock.cli.render.queues import tell_queue
from penstock.cli.render.tables import column, whole
from penstock.cli.render.wording import count, duration, local_time, until

if TYPE_CHECKING:
    from penstock.app.views.schedules import ScheduleDetail, SchedulesExplained, TickView
    from penstock.cli.render.output import Output

SHOWN_MOMENTS = 5
COLUMNS = (
    column("due", 0),
    "outcome",
    "run",
    "state",
    whole("late", 3),
    whole("version", 4),
    "why",
)
PROMISES = (
    ("freshness", "a good run every"),
    ("deadline", "a run takes at most"),
    ("schema_freshness", "its schema is verified every"),
)


def tell_explained(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        now = project.now()
        # Missed ticks are many and alike: as text they are one line.
        found = project.schedules.explain(args.source, ticks=args.limit, missed=args.json)
    if args.json:
        args.out.json(found.as_json())
        return 0
    if not found.schedules:
        args.out.line(_without_schedule(found))
    for each in found.schedules:
        _tell(args.out, each, now)
    _tell_promises(args.out, found)
    return 0


def _without_schedule(found: SchedulesExplained) -> str:
    key = found.source
    if not found.is_scheduled:
        return f"{key} has no schedule: it runs by hand only; penstock run {key}"
    return f"{key} has no schedule in force yet; penstock schedules diff"


def _tell(out: Output, row: ScheduleDetail, now: float) -> None:
    overdue = f", overdue for {duration(row.overdue_s)}" if row.overdue_s else ""
    out.line(f"{row.source} {row.name}")
    out.fields(
        [
            ("policy", row.policy),
            ("class", "" if row.cadence is None else class_words(row.cadence)),
            ("version", f"{row.version}, since {local_time(row.changed_at)}"),
            ("next", next_words(row, now) + overdue),
            ("then", ", ".join(local_time(at) for at in row.coming)),
            ("hours", _hours(row, now)),
            ("files", _watched(row)),
            ("announced", _announced(row, now)),
            ("last run", _last(row)),
            ("ticks", _counted(row)),
            ("warning", row.warning),
        ]
    )
    if missed := _missed(row):
        out.line(missed)
    if row.ticks:
        out.table(COLUMNS, (_tick(each) for each in row.ticks))
    tell_queue(out, row.queue, row.queued, now)
    out.line()


def _last(row: ScheduleDetail) -> str:
    if row.last_run_id is None or row.last_due_at is None:
        return "none yet"
    state, due = row.last_state or "gone", local_time(row.last_due_at)
    return f"{row.last_run_id}, {state}, due {due}, {duration(row.lateness_s or 0.0)} late"


def _announced(row: ScheduleDetail, now: float) -> str:
    """The moments that are not over yet, the first of them."""
    near_s = row.near_s
    if near_s is None:
        return ""
    ahead = [at for at in row.announced if at + near_s >= now]
    if not ahead:
        return "none"
    told = ", ".join(local_time(at) for at in ahead[:SHOWN_MOMENTS])
    more = f" and {len(ahead) - SHOWN_MOMENTS:,} more" if len(ahead) > SHOWN_MOMENTS else ""
    is_near = any(abs(at - now) <= near_s for at in ahead)
    return f"{told}{more}{', which is near' if is_near else ''}"


def _watched(row: ScheduleDetail) -> str:
    """Where files are looked for on this host, and what is wrong with that folder."""
    found = row.watched
    if found is None:
        return ""
    said = f"{count(found.landed, 'file')} landed so far in {found.folder}"
    if found.is_folder:
        return f"{said}; {found.pattern} is a folder: write {found.pattern}/* for what is in it"
    return said if found.is_there else f"{said}, which does not exist"


def _hours(row: ScheduleDetail, now: float) -> str:
    from penstock.app.hours import NEVER

    if not row.has_hours:
        return ""
    if row.opens_at is None:
        return "open now"
    return "never open again" if row.opens_at == NEVER else f"open {until(row.opens_at, now)}"


def _counted(row: ScheduleDetail) -> str:
    found: dict[str, int] = {}
    for each in row.counts:
        found[each.outcome] = found.get(each.outcome, 0) + each.ticks
    return ", ".join(f"{ticks:,} {outcome}" for outcome, ticks in found.items())


def _missed(row: ScheduleDetail) -> str:
    found = [each for each in row.counts if each.missed]
    if not found:
        return ""
    ticks = sum(each.missed for each in found)
    first = min(each.first_missed_at or each.first_at for each in found)
    last = max(each.last_missed_at or each.last_at for each in found)
    return f"{count(ticks, 'tick')} missed, from {local_time(first)} to {local_time(last)}"


def _tick(tick: TickView) -> tuple[object, ...]:
    return (
        local_time(tick.due_at),
        tick.outcome,
        tick.run_id or "",
        tick.state or "",
        duration(tick.lateness_s),
        tick.version,
        tick.reason,
    )


def _tell_promises(out: Output, found: SchedulesExplained) -> None:
    told = []
    for rule, words in PROMISES:
        span = getattr(found.promises, f"{rule}_s")
        if span is not None:
            told.append((rule, f"{words} {duration(span)}; {_state(found, rule)}"))
    if found.promises.schema_freshness_s is not None:
        verified_at = found.schema_verified_at
        told.append(("verified", local_time(verified_at) if verified_at else "never"))
    out.fields(told)
    for each in found.breaches:
        if each.ended_at is not None:
            broke = f"{local_time(each.since)} to {local_time(each.ended_at)}"
            out.line(f"{each.rule} was breached from {broke}: {each.detail}")


def _state(found: SchedulesExplained, rule: str) -> str:
    broken = [each for each in found.breaches if each.ended_at is None and each.rule == rule]
    if not broken:
        return "kept"
    return f"broken since {local_time(broken[-1].since)}: {broken[-1].detail}"
