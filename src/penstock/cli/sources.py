"""`penstock sources`: what is configured, and how each source is doing."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.cli.parser import Commands, add_command, add_json
from penstock.cli.tables import text, whole
from penstock.cli.wording import duration, local_time, until

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.breakers import BreakerView
    from penstock.app.views.budgets import ExhaustedBudgetView
    from penstock.settings import SourceSettings
    from penstock.store.cadences import CadenceRow
    from penstock.store.promises import BreachRow
    from penstock.store.rows import HoldRow, SourceRow

DESCRIPTION = """\
Every source of penstock.yaml, and every former one that left its history. --check imports the pipelines of
all sources and says what is wrong with them; without it, none of your code runs."""
EXAMPLES = """\
  penstock sources
  penstock sources --check
  penstock sources --json"""
COLUMNS = (
    *("source", text("pipeline", 6), text("schedule", 4), whole("next run", 3)),
    *(whole("last run", 5), "state", whole("queued", 5), whole("running", 5)),
    *(whole("waiting", 5), whole("quarantined", 1), text("why not now", 1, 20)),
)


def register(commands: Commands) -> None:
    parser = add_command(
        commands, "sources", "configured sources and their state", DESCRIPTION, EXAMPLES
    )
    parser.add_argument("--check", action="store_true", help="import and check their pipelines")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened

    with opened(args) as project:
        if args.check:
            project.validate()
        _ = project.source_ids
        rows, seen = project.store.sources(), Seen.of(project)
        if args.json:
            breaches = _by_source(project.store.breaches(open_only=True, limit=100 * len(rows)))
            args.out.json_list(_shape(row, seen, breaches.get(row.key, [])) for row in rows)
        elif rows:
            args.out.table(COLUMNS, (_row(row, seen) for row in rows))
        else:
            args.out.line(f"{project.settings.file} has no sources yet")
    return 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What all sources share, asked for once: there may be thousands of them."""

    project: Project
    now: float
    holds: Mapping[str, HoldRow]
    broken: Mapping[str, BreakerView]
    spent: Mapping[str, ExhaustedBudgetView]
    cadences: Mapping[str, CadenceRow]

    @classmethod
    def of(cls, project: Project) -> Seen:
        store = project.store
        return cls(
            project,
            store.now(),
            {each.scope: each for each in store.holds()},
            {each.key: each for each in project.breakers.each() if each.state != "closed"},
            {each.scope: each for each in project.budgets.exhausted()},
            {each.source: each for each in store.cadences()},
        )

    def held(self, key: str) -> list[HoldRow]:
        return [self.holds[scope] for scope in ("", key) if scope in self.holds]


def _by_source(breaches: Iterable[BreachRow]) -> dict[str, list[BreachRow]]:
    found: dict[str, list[BreachRow]] = defaultdict(list)
    for each in breaches:
        found[each.source].append(each)
    return found


def _shape(row: SourceRow, seen: Seen, breaches: list[BreachRow]) -> dict[str, Any]:
    from penstock.cli.shapes import breach_shape, hold_shape, source_shape

    breaker = seen.broken.get(f"source:{row.key}")
    configured = seen.project.settings.sources.get(row.key)
    return {
        **source_shape(row),
        "pipeline": configured.pipeline if configured else None,
        "schedule": _schedule(row, seen),
        "breaker": breaker.as_json() if breaker is not None else None,
        "held": [hold_shape(each) for each in seen.held(row.key)],
        "breaches": [breach_shape(each) for each in breaches],
    }


def _row(row: SourceRow, seen: Seen) -> tuple[object, ...]:
    configured = seen.project.settings.sources.get(row.key)
    return (
        row.key,
        configured.pipeline if configured else "",
        _schedule(row, seen),
        local_time(row.next_run_at) if configured else "",
        row.last_run_id or "",
        row.last_state or "",
        *(row.queued, row.running, row.waiting, row.quarantined),
        _why_not_now(row, seen) or _spent_words(row, seen),
    )


def _schedule(row: SourceRow, seen: Seen) -> str:
    from penstock.cli.cadence import words_of

    configured = seen.project.settings.sources.get(row.key)
    if configured is None:
        return ""
    cadence = seen.cadences.get(row.key)
    told = [words_of(row.key, each, cadence) for each in configured.schedules]
    return "; ".join(told) or "by hand only"


def _why_not_now(row: SourceRow, seen: Seen) -> str:
    from penstock.cli.breakers import words
    from penstock.cli.status import degraded_words, held_words, paused_words

    now, settings = seen.now, seen.project.settings
    configured = settings.sources.get(row.key)
    if configured is None:
        return f"not in {settings.file.name} any more"
    if configured.unset:
        return f"the environment variable {configured.unset[0].name} is not set"
    if held := seen.held(row.key):
        return held_words(held[0])
    if row.paused_at is not None:
        return paused_words(row)
    if row.degraded_at is not None:
        return degraded_words(row)
    if row.cooldown_until > now:
        return (
            f"{row.cooldown_reason or 'asked to wait'}, {duration(row.cooldown_until - now)} left"
        )
    if f"source:{row.key}" in seen.broken:
        return words(seen.broken[f"source:{row.key}"], now)
    return _window_words(settings.sources[row.key], now)


def _spent_words(row: SourceRow, seen: Seen) -> str:
    """Its runs begin, and end partial at the first request."""
    from penstock.cli.budget import exhausted_words

    found = seen.spent.get(f"source:{row.key}") or seen.spent.get("project")
    return exhausted_words(found, seen.now) if found is not None else ""


def _window_words(source: SourceSettings, now: float) -> str:
    from penstock.gates.windows import window_opens_at
    from penstock.project.opened import lane_limits

    windows = lane_limits(source).windows
    opens_at = window_opens_at(windows, now) if windows is not None else None
    return f"outside its hours, which begin {until(opens_at, now)}" if opens_at else ""
