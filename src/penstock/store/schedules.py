"""Scheduling: each schedule's next tick, what became of those before it, and the definitions there were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from penstock.journal.service_events import ScheduleDefined, ScheduleRemoved, ScheduleVersion
from penstock.schedules.auto import effective_schedule, is_auto
from penstock.schedules.definition import settings_of
from penstock.schedules.due import Ticking, what_is_due
from penstock.schedules.near import near
from penstock.settings import ScheduleSettings
from penstock.store.announcements import announced_of
from penstock.store.cadences import CadenceRow
from penstock.store.database import to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.run_transitions import SCHEDULER
from penstock.store.schedule_rows import (
    DueRow,
    Passed,
    Passing,
    Planned,
    ScheduleRow,
    TickCount,
    TickRow,
    VersionRow,
)
from penstock.store.ticks import TickDecision

DUE_LIMIT = 500
BATCH = 500


class Schedules(Noun):
    """The verbs of schedules."""

    def plan(self, planned: Iterable[Planned], actor: str = SCHEDULER) -> int:
        """Make these the schedules there are; answers how many were new, changed or taken out.

        A changed one is planned again under its next version, an unchanged one is left as it stands. Done
        in batches: what was planned before a failure stays, and planning again does the rest.
        """
        changed = 0
        wanted: set[tuple[int, str]] = set()
        each = iter(planned)
        while batch := list(islice(each, BATCH)):
            wanted.update((one.source_id, one.name) for one in batch)
            changed += self._plan(batch, actor)
        gone = {(row[0], row[1]) for row in self._db.json("schedule_keys")} - wanted
        return changed + self._remove(sorted(gone), actor)

    def _plan(self, planned: Sequence[Planned], actor: str) -> int:
        ids = sorted({each.source_id for each in planned})
        found = self._db.json("known_schedules", ids=to_json(ids))
        known = {(row[0], row[1]): row[2:] for row in found}
        wanted = {(each.source_id, each.name): each for each in planned}
        same = {
            where: each
            for where, each in wanted.items()
            if where in known and known[where][0] == each.definition
        }
        self._refresh(known, list(same.values()))
        changed = [wanted[where] for where in sorted(wanted.keys() - same.keys())]
        if not changed:
            return 0
        with self._db.writing() as now:
            self._note_forgotten(
                [(each.source_id, each.name, each.definition) for each in changed], now
            )
            put = self._db.rows("put_schedules", schedules=to_json(changed), now=now)
            return self._note_versions(put, ScheduleDefined, actor, now)

    def _remove(self, gone: Sequence[tuple[int, str]], actor: str) -> int:
        if not gone:
            return 0
        with self._db.writing() as now:
            self._note_forgotten([(*where, "") for where in gone], now)
            dropped = self._db.rows("drop_schedules", schedules=to_json(gone))
            return self._note_versions(dropped, ScheduleRemoved, actor, now)

    def _note_forgotten(self, changed: Sequence[tuple[int, str, str]], now: float) -> None:
        """Ticks that were due by the definitions that end now, and that nobody was there for."""
        due = self._db.decoded("due_of", list[DueRow], schedules=to_json(changed), now=now)
        for row in due:
            rule = self._rule(settings_of(row.definition, row.name), row)
            ticks = what_is_due(rule, "once", row.due_at, now)
            passed = (*ticks.passed, *(() if ticks.fires is None else (ticks.fires,)))
            passing = Passing(row, None, passed)
            act = TickDecision(self._db, now, passing, None, "")
            act.pass_all("the schedule was changed")
            act.ledger.write()

    def _rule(self, settings: ScheduleSettings, row: DueRow) -> Ticking:
        rule = effective_schedule(settings, row.source, self._class_of(row, settings))
        if settings.near is not None:
            rule = near(rule, announced_of(self._db, row.source_id))
        return Ticking(rule)

    def _class_of(self, row: DueRow, settings: ScheduleSettings) -> str | None:
        if not is_auto(settings):
            return None
        found = self._db.decoded("cadences", list[CadenceRow], source_id=row.source_id)
        return found[0].level if found else None

    def _note_versions(
        self, rows: Sequence[Any], event: type[ScheduleVersion], actor: str, now: float
    ) -> int:
        versions = sorted(tuple(row) for row in rows)
        self._db.do("add_schedule_versions", versions=to_json(versions), actor=actor, now=now)
        ledger = Ledger(self._db, now)
        for source_id, name, version, _, words in versions:
            ledger.journal(event(name, version, words), source_id, actor=actor)
        ledger.write()
        return len(versions)

    def _refresh(self, known: dict[tuple[int, str], Any], same: Sequence[Planned]) -> None:
        said = [
            (each.source_id, each.name, each.words)
            for each in same
            if known[each.source_id, each.name][1] != each.words
        ]
        woken = [
            (each.source_id, each.name, each.next_due_at)
            for each in same
            if known[each.source_id, each.name][2] is None and each.next_due_at is not None
        ]
        for query, rows in (("say_schedules", said), ("plan_schedules_if_idle", woken)):
            if rows:
                with self._db.writing():
                    self._db.do(query, schedules=to_json(rows))

    def next_look_at(self) -> float | None:
        """When the first schedule is to be looked at."""
        found = self._db.value("next_look_at")
        return None if found is None else float(found)

    def due(self, now: float, limit: int = DUE_LIMIT) -> list[DueRow]:
        """Those that are to be looked at by now, the oldest first; no others are read."""
        return self._db.decoded("due_schedules", list[DueRow], now=now, limit=limit)

    def put_off(self, rows: Sequence[DueRow], until: float) -> None:
        """Look at these later, because something keeps them from starting; they stay due."""
        if rows:
            chosen = [(row.source_id, row.name, row.version, row.due_at) for row in rows]
            with self._db.writing():
                self._db.do("look_again", schedules=to_json(sorted(chosen)), look_at=until)

    def has_overdue_ticks(self) -> bool:
        """Whether ticks that are due wait for their turn to be made up for."""
        return bool(self._db.value("has_overdue", now=self._db.now()))

    def late_fires(self, since: float, grace_s: float) -> int:
        """How many runs were started since then for ticks that were long past."""
        return int(self._db.value("late_fires", since=since, grace_s=grace_s))

    def pass_ticks(self, passing: Passing) -> Passed | None:
        """Decide on a schedule's ticks; None if it is another version by now, or another tick is next.

        However many take themselves for the scheduler, one of them finds the schedule as it was read,
        and a tick that has a row is never fired again. What was skipped, denied or missed does not move
        the last run.
        """
        row = passing.row
        where = {"source_id": row.source_id, "schedule": row.name}
        with self._db.writing() as now:
            found = self._db.rows("schedule_to_fire", **where)
            if not found or (found[0][0], found[0][1]) != (row.version, row.due_at):
                return None
            _, _, last_due_at, words = found[0]
            act = TickDecision(self._db, now, passing, last_due_at, words)
            done = act.perform()
            if done.outcome != "put-off":
                self._db.do("pass_tick", next_due_at=passing.next_due_at, **where)
            act.ledger.write()
            return done

    # Looking.

    def all(self, source_id: int | None = None) -> list[ScheduleRow]:
        return self._db.decoded("schedules", list[ScheduleRow], source_id=source_id)

    def ticks(
        self,
        source_id: int,
        name: str,
        limit: int = 20,
        *,
        before: float = 1e18,
        with_missed: bool = True,
    ) -> list[TickRow]:
        """What became of a schedule's ticks, the last first."""
        return self._db.decoded(
            "ticks",
            list[TickRow],
            source_id=source_id,
            schedule=name,
            limit=limit,
            before=before,
            with_missed=with_missed,
        )

    def tick_counts(self, source_id: int, since: float = 0.0) -> list[TickCount]:
        return self._db.decoded("tick_counts", list[TickCount], source_id=source_id, since=since)

    def versions(self, source_id: int) -> list[VersionRow]:
        return self._db.decoded("schedule_versions", list[VersionRow], source_id=source_id)
