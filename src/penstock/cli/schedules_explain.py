"""`penstock schedules explain`: why a source did or did not run when it was due."""

from __future__ import annotations

import argparse
from itertools import islice
from typing import TYPE_CHECKING, Any

from penstock.cli.queues import Queue
from penstock.cli.schedules import next_words, shapes
from penstock.cli.tables import column, whole
from penstock.cli.wording import count, duration, iso, local_time, until

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.store.promises import BreachRow
    from penstock.store.scheduling import ScheduleRow, TickRow

AHEAD = 5
AHEAD_S = 366 * 86_400.0
COLUMNS = (
    column("due", 0),
    "outcome",
    "run",
    "state",
    whole("late", 3),
    whole("version", 4),
    "why",
)


def tell_explained(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened, source_key
    from penstock.cli.shapes import breach_shape

    with opened(args) as project:
        key = source_key(project, args.source) or ""
        source_id = project.connection.ensure_sources([key])[key]
        now = project.connection.now()
        rows = project.connection.schedules(source_id)
        breaches = project.connection.breaches(source_id, limit=args.limit)
        if args.json:
            schedules = [_shape(project, row, now, args.limit) for row in rows]
            args.out.json(
                {
                    "source": key,
                    "schedules": schedules,
                    "promises": _promises(project, key),
                    "schema_verified_at": iso(
                        project.connection.verification(source_id).verified_at
                    ),
                    "breaches": [breach_shape(each) for each in breaches],
                }
            )
            return 0
        if not rows:
            args.out.line(_without_schedule(project, key))
        for row in rows:
            _tell(args, project, row, now)
        _tell_promises(args, project, key, breaches, now)
    return 0


def _without_schedule(project: Project, key: str) -> str:
    source = project.settings.sources.get(key)
    if source is None or not source.schedules:
        return f"{key} has no schedule: it runs by hand only; penstock run {key}"
    return f"{key} has no schedule that was put to work; penstock schedules diff"


def _tell(args: argparse.Namespace, project: Project, row: ScheduleRow, now: float) -> None:
    [seen] = shapes(project, [row], now)
    why_not = _why_not_now(project, row, now)
    overdue = f", overdue for {duration(seen['overdue_s'])}" if seen["overdue_s"] else ""
    args.out.line(f"{row.source} {row.name}")
    args.out.fields(
        [
            ("policy", row.words),
            ("class", _class(project, row)),
            ("version", f"{row.version}, since {local_time(row.changed_at)}"),
            ("next", next_words(seen, now) + overdue),
            ("then", ", ".join(local_time(at) for at in _ahead(project, row, now))),
            ("hours", why_not),
            ("files", _watched(project, row)),
            ("announced", _announced(project, row, now)),
            ("last run", _last(row)),
            ("ticks", _counted(project, row)),
            ("warning", seen["warning"]),
        ]
    )
    ticks = project.connection.ticks(row.source_id, row.name, args.limit, with_missed=False)
    missed = _misses(project, row)
    if missed:
        args.out.line(missed)
    if ticks:
        args.out.table(COLUMNS, (_tick(each) for each in ticks))
    Queue(project, row.source_id, row.name).tell(args.out, now)
    args.out.line()


def _class(project: Project, row: ScheduleRow) -> str:
    from penstock.app.views.schedules import cadence_view
    from penstock.cli.cadence import class_words
    from penstock.schedules.auto import is_auto
    from penstock.schedules.definition import settings_of

    settings = settings_of(row.definition, row.name)
    found = project.connection.cadences(row.source_id) if is_auto(settings) else []
    return class_words(cadence_view(found[0])) if found else ""


def _last(row: ScheduleRow) -> str:
    if row.last_run_id is None or row.last_due_at is None:
        return "none yet"
    late_s = (row.last_started_at or row.last_due_at) - row.last_due_at
    state = row.last_state or "gone"
    return f"{row.last_run_id}, {state}, due {local_time(row.last_due_at)}, {duration(late_s)} late"


def _ahead(project: Project, row: ScheduleRow, now: float) -> list[float]:
    from penstock.cli.schedules_next import starts

    found = (
        each.at
        for each in starts(project, now, now + AHEAD_S, row.source, row.name)
        if not each.is_denied
    )
    return list(islice(found, AHEAD))


def _moments(project: Project, row: ScheduleRow) -> list[float]:
    from penstock.cli.schedules_next import announced
    from penstock.schedules.definition import settings_of

    return announced(project, settings_of(row.definition, row.name), row)


def _announced(project: Project, row: ScheduleRow, now: float) -> str:
    """The moments that are not over yet, the first of them."""
    from penstock.schedules.definition import settings_of

    near = settings_of(row.definition, row.name).near
    if near is None:
        return ""
    ahead = [at for at in _moments(project, row) if at + near.window_s >= now]
    if not ahead:
        return "nothing"
    told = ", ".join(local_time(at) for at in ahead[:AHEAD])
    more = f" and {len(ahead) - AHEAD:,} more" if len(ahead) > AHEAD else ""
    is_near = any(abs(at - now) <= near.window_s for at in ahead)
    return f"{told}{more}{', which is near' if is_near else ''}"


def _watched(project: Project, row: ScheduleRow) -> str:
    """Where files are looked for from here, and what is amiss with that place."""
    from pathlib import Path

    from penstock.engine.leader.files import folder_of
    from penstock.schedules.definition import settings_of
    from penstock.settings.pattern import pattern_of

    watch = settings_of(row.definition, row.name).watch
    if watch is None:
        return ""
    root = folder_of(project, pattern_of(watch.pattern))
    known = len(project.connection.landed(row.source_id, row.name))
    said = f"{count(known, 'file')} landed so far in {root}"
    if Path(project.settings.root / watch.pattern).is_dir():
        return f"{said}; {watch.pattern} is a folder: write {watch.pattern}/* for what is in it"
    return said if root.is_dir() else f"{said}, which is not there"


def _why_not_now(project: Project, row: ScheduleRow, now: float) -> str:
    from penstock.app.hours import NEVER, schedule_hours
    from penstock.schedules.definition import settings_of

    is_bounded, opens_at = schedule_hours(settings_of(row.definition, row.name), now)
    if not is_bounded:
        return ""
    if opens_at is None:
        return "it may start now"
    return "never" if opens_at == NEVER else f"it may start {until(opens_at, now)}"


def _counted(project: Project, row: ScheduleRow) -> str:
    found: dict[str, int] = {}
    for each in project.connection.tick_counts(row.source_id):
        if each.schedule == row.name:
            found[each.outcome] = found.get(each.outcome, 0) + each.ticks
    return ", ".join(f"{ticks:,} {outcome}" for outcome, ticks in found.items())


def _misses(project: Project, row: ScheduleRow) -> str:
    found = [
        each
        for each in project.connection.tick_counts(row.source_id)
        if each.schedule == row.name and each.missed
    ]
    if not found:
        return ""
    ticks = sum(each.missed for each in found)
    first = min(each.first_missed_at or each.first_at for each in found)
    last = max(each.last_missed_at or each.last_at for each in found)
    return f"{count(ticks, 'tick')} missed, from {local_time(first)} to {local_time(last)}"


def _tick(tick: TickRow) -> tuple[object, ...]:
    return (
        local_time(tick.due_at),
        tick.outcome,
        tick.run_id or "",
        tick.state or "",
        duration(tick.at - tick.due_at),
        tick.version,
        tick.reason,
    )


def _shape(project: Project, row: ScheduleRow, now: float, limit: int) -> dict[str, Any]:
    [seen] = shapes(project, [row], now)
    told = {name: iso(value) if name.endswith("_at") else value for name, value in seen.items()}
    return {
        **told,
        "queue": Queue(project, row.source_id, row.name).shapes(),
        "announced": [iso(at) for at in _moments(project, row)],
        "coming": [iso(at) for at in _ahead(project, row, now)],
        "ticks": [
            {
                "due_at": iso(tick.due_at),
                "outcome": tick.outcome,
                "run": tick.run_id,
                "state": tick.state,
                "at": iso(tick.at),
                "lateness_s": round(tick.at - tick.due_at, 3),
                "version": tick.version,
                "reason": tick.reason,
            }
            for tick in project.connection.ticks(row.source_id, row.name, limit)
        ],
        "counts": [
            {
                "version": each.version,
                "outcome": each.outcome,
                "ticks": each.ticks,
                "first_at": iso(each.first_at),
                "last_at": iso(each.last_at),
            }
            for each in project.connection.tick_counts(row.source_id)
            if each.schedule == row.name
        ],
    }


def _promises(project: Project, key: str) -> dict[str, float | None]:
    source = project.settings.sources.get(key)
    return {
        "freshness_s": source.freshness_s if source else None,
        "deadline_s": source.deadline_s if source else None,
        "schema_freshness_s": source.schema_freshness_s if source else None,
    }


def _tell_promises(
    args: argparse.Namespace, project: Project, key: str, breaches: list[BreachRow], now: float
) -> None:
    promised = _promises(project, key)
    open_now = [each for each in breaches if each.ended_at is None]
    told = []
    for rule, words in (
        ("freshness", "a good run every"),
        ("deadline", "a run takes at most"),
        ("schema_freshness", "its schema is verified every"),
    ):
        span = promised[f"{rule}_s"]
        if span is not None:
            broken = [each for each in open_now if each.rule == rule]
            state = (
                f"broken since {local_time(broken[-1].since)}: {broken[-1].detail}"
                if broken
                else "kept"
            )
            told.append((rule, f"{words} {duration(span)}; {state}"))
    if promised["schema_freshness_s"] is not None:
        verified_at = project.connection.verification(project.source_ids[key]).verified_at
        told.append(("verified", local_time(verified_at) if verified_at else "never"))
    args.out.fields(told)
    for each in breaches:
        if each.ended_at is not None:
            broke = f"{local_time(each.since)} to {local_time(each.ended_at)}"
            args.out.line(f"{each.rule} was broken from {broke}: {each.detail}")
