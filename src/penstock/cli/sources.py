"""`penstock sources`: what is configured, and how each source is doing."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.cli.parser import Commands, add_command, add_json
from penstock.cli.tables import text, whole
from penstock.cli.wording import duration, local_time, until

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.store.breakers import BreakerRow
    from penstock.store.promises import BreachRow
    from penstock.store.rows import BudgetRow, HoldRow, SourceRow

DESCRIPTION = """\
Every source of penstock.yaml, and every former one that left its history. Imports and checks the
pipelines, so a mistake in them is told here."""
EXAMPLES = """\
  penstock sources
  penstock sources --json"""
COLUMNS = (
    *("source", text("pipeline", 6), text("schedule", 4), whole("next run", 3)),
    *(whole("last run", 5), "state", whole("queued", 5), whole("running", 5)),
    *(whole("waiting", 5), whole("quarantined", 1), text("why not now", 1, 20)),
)


def register(commands: Commands) -> None:
    parser = add_command(
        commands, "sources", "what is configured, and how it is doing", DESCRIPTION, EXAMPLES
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened

    with opened(args) as project:
        _ = project.source_ids
        rows, holds = project.store.sources(), project.store.holds()
        broken = {each.key: each for each in project.store.breakers() if each.state != "closed"}
        spent = {each.scope: each for each in project.store.exhausted_budgets()}
        if args.json:
            breaches = project.store.breaches(open_only=True, limit=100 * len(rows))
            args.out.json_list(_shape(row, project, holds, broken, breaches) for row in rows)
        elif rows:
            args.out.table(COLUMNS, (_row(row, project, holds, broken, spent) for row in rows))
        else:
            args.out.line(f"{project.settings.file} has no sources yet")
    return 0


def _shape(
    row: SourceRow,
    project: Project,
    holds: list[HoldRow],
    broken: Mapping[str, BreakerRow],
    breaches: list[BreachRow],
) -> dict[str, Any]:
    from penstock.cli.breakers import shape
    from penstock.cli.shapes import breach_shape, hold_shape, source_shape

    breaker = broken.get(f"source:{row.key}")
    configured = project.settings.sources.get(row.key)
    return {
        **source_shape(row),
        "pipeline": configured.pipeline if configured else None,
        "schedule": _schedule(row, project),
        "breaker": shape(breaker) if breaker is not None else None,
        "held": [hold_shape(each) for each in holds if each.scope in ("", row.key)],
        "breaches": [breach_shape(each) for each in breaches if each.source == row.key],
    }


def _row(
    row: SourceRow,
    project: Project,
    holds: list[HoldRow],
    broken: Mapping[str, BreakerRow],
    spent: Mapping[str, BudgetRow],
) -> tuple[object, ...]:
    configured = project.settings.sources.get(row.key)
    return (
        row.key,
        configured.pipeline if configured else "",
        _schedule(row, project),
        local_time(row.next_run_at) if configured else "",
        row.last_run_id or "",
        row.last_state or "",
        *(row.queued, row.running, row.waiting, row.quarantined),
        _why_not_now(row, project, holds, broken) or _spent_words(row, project, spent),
    )


def _schedule(row: SourceRow, project: Project) -> str:
    from penstock.cli.cadence import words_now

    configured = project.settings.sources.get(row.key)
    if configured is None:
        return ""
    told = [words_now(project, row.key, each) for each in configured.schedules]
    return "; ".join(told) or "by hand only"


def _why_not_now(
    row: SourceRow, project: Project, holds: list[HoldRow], broken: Mapping[str, BreakerRow]
) -> str:
    from penstock.cli.breakers import words
    from penstock.cli.status import degraded_words, held_words, paused_words

    now = project.store.now()
    configured = project.settings.sources.get(row.key)
    if configured is None:
        return f"not in {project.settings.file.name} any more"
    if configured.unset:
        return f"the environment variable {configured.unset[0].name} is not set"
    held = next((each for each in holds if each.scope in ("", row.key)), None)
    if held is not None:
        return held_words(held)
    if row.paused_at is not None:
        return paused_words(row)
    if row.degraded_at is not None:
        return degraded_words(row)
    if row.cooldown_until > now:
        return (
            f"{row.cooldown_reason or 'asked to wait'}, {duration(row.cooldown_until - now)} left"
        )
    if f"source:{row.key}" in broken:
        return words(broken[f"source:{row.key}"], now)
    return _window_words(project, row.key, now)


def _spent_words(row: SourceRow, project: Project, spent: Mapping[str, BudgetRow]) -> str:
    """Its runs begin, and end partial at the first request."""
    from penstock.cli.budget import exhausted_words

    found = spent.get(f"source:{row.key}") or spent.get("project")
    return exhausted_words(found, project.store.now()) if found is not None else ""


def _window_words(project: Project, key: str, now: float) -> str:
    from penstock.gates.windows import window_opens_at

    windows = project.limits()[project.source_ids[key]].windows
    opens_at = window_opens_at(windows, now) if windows is not None else None
    return f"outside its hours, which begin {until(opens_at, now)}" if opens_at else ""
