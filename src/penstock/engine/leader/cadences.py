"""Cadences: sources whose cadence is `auto` are moved by what came of their runs, or are proposed to be.

Done by the host that leads, when runs have ended; what a person does goes through here too.
"""

from __future__ import annotations

from penstock.errors import Refused, UsageError
from penstock.project import Project
from penstock.schedules.auto import (
    LADDER,
    Level,
    Move,
    Standing,
    effective_schedule,
    first_level,
    is_auto,
    judge,
    moved,
    rule_of,
)
from penstock.schedules.definition import policy_words
from penstock.schedules.due import Ticking
from penstock.settings import ScheduleSettings, SourceSettings
from penstock.store.cadences import CadenceMove, CadenceRow
from penstock.store.store import Store

EVERY_S = 30.0
LEADER = "scheduler"


class CadenceChore:
    """Looks at what came of runs, and moves sources between their classes."""

    def __init__(self, project: Project, store: Store) -> None:
        self._project = project
        self._store = store
        self._look_at = float("-inf")
        self._auto = auto_sources(project)

    def look(self) -> int:
        """Move what is to be moved, if it is time; answers how many were moved or proposed."""
        now = self._project.clock.monotonic()
        if not self._auto or now < self._look_at:
            return 0
        self._look_at = now + EVERY_S
        rows = self._rows()
        ended = self._store.cadences.runs({row.source_id: row.last_run_id for row in rows})
        count = 0
        for row in rows:
            runs = ended.get(row.source_id, [])
            settings = self._auto[row.source]
            is_within = row.level in LADDER and rule_of(settings).held(row.level) == row.level
            if not runs and is_within:
                continue
            is_degraded = self._store.sources.health(row.source_id).degraded_at is not None
            standing, move = judge(row.standing, runs, is_degraded, rule_of(settings))
            count += self._follow(row, settings, standing, move)
        return count

    def _rows(self) -> list[CadenceRow]:
        ids = self._store.sources.ensure(list(self._auto))
        known = {row.source for row in self._store.cadences.all()}
        new = [(ids[key], first_level(self._auto[key])) for key in self._auto if key not in known]
        self._store.cadences.begin(new)
        return [row for row in self._store.cadences.all() if row.source in self._auto]

    def _follow(
        self, row: CadenceRow, settings: ScheduleSettings, standing: Standing, move: Move | None
    ) -> bool:
        if move is None or move.level == row.level:
            if standing != row.standing:
                self._store.cadences.note(row, standing)
            return False
        if settings.mode == "suggest":
            if move.level == row.proposed:
                self._store.cadences.note(row, standing)
                return False
            words = _words(self._project, row.source, standing, move.level)
            return self._store.cadences.propose(
                row, standing, move.level, move.reason, LEADER, words
            )
        change = _change(self._project, self._store, row, moved(standing, move.level), move.reason)
        return self._store.cadences.move(row, change, LEADER)


def auto_sources(project: Project) -> dict[str, ScheduleSettings]:
    """The sources whose cadence is `auto`, each with the first of its schedules that is."""
    found = {}
    for key, source in project.settings.sources.items():
        auto = [each for each in source.schedules if is_auto(each)]
        if auto:
            found[key] = auto[0]
    return found


def set_cadence(project: Project, key: str, level: Level, actor: str, reason: str) -> CadenceRow:
    """Give a source another class by hand; it is judged from there by the runs that come."""
    settings, row = _auto_row(project, key)
    rule = rule_of(settings)
    if rule.held(level) != level:
        raise Refused(f"{key} may be {rule.slowest} to {rule.fastest}", "penstock.yaml says so")
    if level == row.level and not row.proposed:
        raise Refused(f"{key} is {level} already")
    return _by_hand(project, row, level, actor, reason or "set by hand")


def undo_cadence(project: Project, key: str, actor: str, reason: str) -> CadenceRow:
    """Give a source the class back that it had before."""
    _, row = _auto_row(project, key)
    before = next((level for level in LADDER if level == row.before), None)
    if before is None or before == row.level:
        raise Refused(f"{key} was not moved yet: there is nothing to undo")
    why = f"undone{f': {reason}' if reason else ''}"
    return _by_hand(project, row, before, actor, why)


def _by_hand(
    project: Project, row: CadenceRow, level: Level, actor: str, reason: str
) -> CadenceRow:
    standing = moved(row.standing, level)
    change = _change(project, project.connection, row, standing, reason)
    if not project.connection.cadences.move(row, change, actor):
        raise Refused(f"{row.source} was changed by another process just now", "look at it again")
    [after] = project.connection.cadences.all(row.source_id)
    return after


def _auto_row(project: Project, key: str) -> tuple[ScheduleSettings, CadenceRow]:
    settings = auto_sources(project).get(key)
    if settings is None:
        raise UsageError(f"the cadence of {key} is not auto", "schedule: {cadence: auto}")
    source_id = project.source_ids[key]
    project.connection.cadences.begin([(source_id, first_level(settings))])
    [row] = project.connection.cadences.all(source_id)
    return settings, row


def _change(
    project: Project, store: Store, row: CadenceRow, standing: Standing, reason: str
) -> CadenceMove:
    source: SourceSettings = project.settings.sources[row.source]
    now = store.now()
    due = {
        each.name: Ticking(effective_schedule(each, row.source, standing.level)).next_due(now)
        for each in source.schedules
        if is_auto(each)
    }
    words = _words(project, row.source, standing)
    return CadenceMove(row.level, standing, reason, due, words)


def _words(project: Project, key: str, standing: Standing, proposed: str = "") -> dict[str, str]:
    """What the schedules of a source that go by its class are called."""
    return {
        each.name: policy_words(each, key, standing, proposed)
        for each in project.settings.sources[key].schedules
        if is_auto(each)
    }
