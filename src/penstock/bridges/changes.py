"""What sensors of engines ask: new files, budgets that have reset, signals, ended runs.

Each question takes a cursor, a text that the engine keeps between two looks, and answers with the next one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.app.views.budgets import BudgetView
from penstock.app.views.runs import RunView
from penstock.app.views.signals import SignalView
from penstock.bridges.drains import failing_in_one_line
from penstock.bridges.places import Place

# A file that is younger may still be written.
SETTLED_S = 5.0
MOST = 100
PERIODS = {"d": "day"}


@dataclass(frozen=True, slots=True)
class NewInput:
    """Files that are new or changed since the last look, and a name for just this state of them."""

    paths: Sequence[str]
    key: str
    cursor: str


def new_files(
    folder: Path, pattern: str, cursor: str | None, now: float, settled_s: float = SETTLED_S
) -> NewInput:
    """Files below a folder that were not there, or had another size or time, when the cursor was made."""
    known: dict[str, str] = json.loads(cursor) if cursor else {}
    found = {}
    for path in sorted(folder.glob(pattern)):
        state = path.stat() if path.is_file() else None
        if state is not None and state.st_mtime <= now - settled_s:
            found[str(path.relative_to(folder))] = f"{state.st_size}:{state.st_mtime_ns}"
    fresh = [name for name, state in found.items() if known.get(name) != state]
    text = json.dumps({name: found[name] for name in fresh}, sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    # A file that is too young now keeps its former state, so that it is not forgotten.
    return NewInput(fresh, key, json.dumps({**known, **found}, sort_keys=True))


@dataclass(frozen=True, slots=True)
class BudgetsReset:
    """Budgets that were exhausted at the last look and are not now."""

    names: Sequence[str]
    cursor: str


def reset_budgets(place: Place, source: str | None, cursor: str | None) -> BudgetsReset:
    """Which budgets have reset, of those that a source counts against, or of all."""
    with failing_in_one_line(), place.opened() as project:
        found = {_name(each): each for each in project.budgets.each(source=source)}
    exhausted = {name for name, each in found.items() if each.is_exhausted}
    before = set(json.loads(cursor)) if cursor else set()
    return BudgetsReset(
        sorted(name for name in before - exhausted if name in found),
        json.dumps(sorted(exhausted)),
    )


def new_signals(place: Place, name: str, cursor: str | None) -> tuple[list[SignalView], str]:
    """Signals of this name that were raised since the last look, oldest first; at the first look, none."""
    with failing_in_one_line(), place.opened() as project:
        found = project.signals.list(name, limit=MOST).items
    newest = str(max((each.id for each in found), default=int(cursor or 0)))
    if cursor is None:
        return [], newest
    return [each for each in reversed(found) if each.id > int(cursor)], newest


def newly_ended_runs(
    place: Place, source: str | None, cursor: str | None
) -> tuple[list[RunView], str]:
    """Runs that have ended since the last look, oldest first; at the first look, none."""
    with failing_in_one_line(), place.opened() as project:
        found = project.runs.list(source, limit=MOST).items
    ended = {run.id: run for run in reversed(found) if run.is_ended}
    known = set(json.loads(cursor)) if cursor else set()
    fresh = [] if cursor is None else [run for number, run in ended.items() if number not in known]
    return fresh, json.dumps(sorted(ended))


def _name(budget: BudgetView) -> str:
    whose = budget.source or (f"run {budget.run}" if budget.run else "project")
    return f"{whose}: {budget.measure} a {PERIODS.get(budget.period, budget.period)}"
