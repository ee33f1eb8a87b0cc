"""Scheduling: each schedule's next tick, what became of those before it, and the definitions there were.

A tick starts one run, ever: its row (source, schedule, due_at) is written in the transaction that adds the
run, and whoever finds it there does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from penstock.jobs.run import NO_OPTIONS, Plan, RunKind, RunOptions
from penstock.journal.event import Event
from penstock.journal.service_events import (
    ScheduleDefined,
    ScheduleDenied,
    ScheduleMissed,
    ScheduleRemoved,
    ScheduleReplaced,
    ScheduleSkipped,
    ScheduleVersion,
    not_ended,
)
from penstock.schedules.auto import effective_schedule, is_auto
from penstock.schedules.definition import settings_of
from penstock.schedules.due import Ticking, what_is_due
from penstock.schedules.near import near
from penstock.schedules.overlap import Active, Overlap, meet
from penstock.settings import ScheduleSettings
from penstock.store.announcements import announced_of
from penstock.store.cadences import CadenceRow
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.run_transitions import SCHEDULER, active_runs_of, add_run, cancel_active

Outcome = Literal["fired", "joined", "missed", "skipped", "denied"]
DUE_LIMIT = 500
BATCH = 500


class Planned(msgspec.Struct, frozen=True, array_like=True):
    """A schedule as the configuration has it, and when it would be due first if it were new."""

    source_id: int
    name: str
    definition: str
    words: str
    kind: str
    next_due_at: float | None


class DueRow(msgspec.Struct, frozen=True, array_like=True):
    """A schedule that is to be looked at. It was put off if it is looked at later than it is due."""

    source_id: int
    source: str
    name: str
    version: int
    due_at: float
    look_at: float
    definition: str

    @property
    def is_put_off(self) -> bool:
        return self.look_at > self.due_at


class ScheduleRow(msgspec.Struct, frozen=True):
    """A schedule and where it stands; `tick_*` is its last tick, `last_*` the last that started a run."""

    source_id: int
    source: str
    name: str
    version: int
    definition: str
    words: str
    kind: str
    next_due_at: float | None
    look_at: float | None
    last_due_at: float | None
    last_run_id: int | None
    changed_at: float
    last_started_at: float | None = None
    last_state: str | None = None
    tick_at: float | None = None
    tick_outcome: str | None = None
    tick_reason: str = ""


class TickRow(msgspec.Struct, frozen=True):
    schedule: str
    due_at: float
    version: int
    outcome: Outcome
    run_id: int | None
    reason: str
    at: float
    state: str | None = None


class TickCount(msgspec.Struct, frozen=True):
    schedule: str
    version: int
    outcome: Outcome
    ticks: int
    first_at: float
    last_at: float
    # How many of them nobody was there for; a late one may have fired all the same.
    missed: int = 0
    first_missed_at: float | None = None
    last_missed_at: float | None = None


class VersionRow(msgspec.Struct, frozen=True):
    """A definition that a schedule had; it is empty where the schedule was taken out."""

    name: str
    version: int
    definition: str
    words: str
    at: float
    actor: str


@dataclass(frozen=True, slots=True)
class Start:
    """What a tick would start."""

    kind: RunKind
    plan: Plan
    pipeline_version: str
    options: RunOptions = NO_OPTIONS


@dataclass(frozen=True, slots=True)
class Passing:
    """What is to become of a schedule's ticks up to now: those that are over, and one that may fire.

    `denied` says why it may not. `is_missed`: nobody was there when it was due. `patient` is a missed tick
    that is made up for by itself: it waits for a run that has not ended, whatever the overlap.
    """

    row: DueRow
    next_due_at: float | None
    passed: Sequence[float] = ()
    passed_as: Outcome = "missed"
    fires: float | None = None
    start: Start | None = None
    denied: str = ""
    overlap: Overlap = "skip"
    is_missed: bool = False
    patient: bool = False
    again_s: float = field(default=2.0)


@dataclass(frozen=True, slots=True)
class Passed:
    """What became of it. `put-off`: nothing yet; `known`: somebody had decided on this tick before."""

    outcome: Outcome | Literal["put-off", "known"]
    run_id: int | None = None
    reason: str = ""


class Schedules(Noun):
    """The verbs of schedules."""

    def plan(self, planned: Iterable[Planned], actor: str = SCHEDULER) -> int:
        """Make these the schedules there are; answers how many were new, changed or taken out.

        A changed one is planned anew under its next version, an unchanged one is left as it stands. Done
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
            act = _Act(self._db, now, passing, None, "")
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
            act = _Act(self._db, now, passing, last_due_at, words)
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


class _Act:
    """One schedule's ticks, decided in one transaction."""

    def __init__(
        self, db: Database, now: float, passing: Passing, last_due_at: float | None, words: str
    ) -> None:
        self._db = db
        self._now = now
        self._passing = passing
        self._row = passing.row
        self._last_due_at = last_due_at
        self._words = words
        self.ledger = Ledger(db, now)

    def perform(self) -> Passed:
        passing = self._passing
        if passing.fires is None:
            return self._only_pass("", "missed", passing.passed)
        where = (self._row.source_id, self._row.name, passing.fires)
        if self._db.value("has_tick", source_id=where[0], schedule=where[1], due_at=where[2]):
            self._note_passed(None, passing.passed)
            return Passed("known")
        if passing.denied or passing.start is None:
            denied = ScheduleDenied(self._row.name, passing.denied)
            return self._decline("denied", passing.denied, denied)
        self._db.lock_lanes([self._row.source_id])
        active = active_runs_of(self._db, self._row.source_id)
        return self._meet(passing.start, passing.fires, active)

    def _meet(self, start: Start, due_at: float, active: Sequence[Active]) -> Passed:
        passing = self._passing
        met = meet(active, start.kind, due_at, passing.overlap, is_patient=passing.patient)
        if met.act == "wait":
            return self._wait(met.run_id)
        if met.act == "join":
            return self._join(due_at, met.run_id)
        if met.act == "skip":
            skipped = ScheduleSkipped(self._row.name, active_run=met.run_id)
            return self._decline("skipped", not_ended(met.run_id), skipped)
        return self._fire(start, due_at, replaces=met.act == "replace")

    def _wait(self, run_id: int | None) -> Passed:
        again = [(self._row.source_id, self._row.name, self._row.version, self._row.due_at)]
        look_at = self._now + self._passing.again_s
        self._db.do("look_again", schedules=to_json(again), look_at=look_at)
        if self._passing.is_missed and not self._passing.patient:
            # Those that come meanwhile join it; who was not there is only known now.
            self._tell_missed(self._missed(), None)
        return Passed("put-off", run_id, f"waits for run {run_id}")

    def _join(self, due_at: float, run_id: int | None) -> Passed:
        reason = f"run {run_id} began after it was due and does at least as much"
        self._note([due_at], "joined", run_id, reason, was_missed=self._passing.is_missed)
        self._note_passed(run_id, self._missed())
        return Passed("joined", run_id, reason)

    def _decline(self, outcome: Literal["denied", "skipped"], reason: str, event: Event) -> Passed:
        passing = self._passing
        fires = [] if passing.fires is None else [passing.fires]
        self._note(fires, outcome, reason=reason, was_missed=passing.is_missed)
        self._tell(event)
        return self._only_pass(reason, outcome, self._missed())

    def _missed(self) -> tuple[float, ...]:
        """The ticks that nobody was there for; the one that may fire is one of them if it comes too late."""
        passing = self._passing
        passed = tuple(passing.passed) if passing.passed_as == "missed" else ()
        late = (passing.fires,) if passing.is_missed and passing.fires is not None else ()
        return (*passed, *late)

    def pass_all(self, reason: str) -> None:
        """All of it is over, for this reason."""
        self._note(self._passing.passed, "missed", reason=reason)
        self._tell_missed(self._passing.passed, None)

    def _only_pass(self, reason: str, outcome: Outcome, missed: Sequence[float]) -> Passed:
        self._note_passed(None, missed)
        return Passed(outcome, None, reason)

    def _fire(self, start: Start, due_at: float, *, replaces: bool) -> Passed:
        row, joins = self._row, self._joins()
        if not self._note([due_at], "fired", reason=joins, was_missed=self._passing.is_missed):
            return Passed("known")
        reason = f"{self._words}; {joins}" if joins else self._words
        replaced = self._replace() if replaces else ""
        # From the tick that last started a run to this one: with what was missed in between.
        end_at = max((due_at, *self._passing.passed))
        options = replace(start.options, start_at=self._last_due_at, end_at=end_at)
        run_id = add_run(
            self._db,
            self._now,
            row.source_id,
            start.kind,
            start.plan,
            start.pipeline_version,
            f"tick:{row.name}:{due_at:.3f}",
            SCHEDULER,
            reason,
            options,
        )
        if run_id is None:
            return Passed("known")
        where = {
            "source_id": row.source_id,
            "schedule": row.name,
            "due_at": due_at,
            "run_id": run_id,
        }
        self._db.do("set_tick_run", **where)
        self._db.do("note_fired", **where)
        self._note_passed(run_id, self._missed())
        return Passed("fired", run_id, replaced)

    def _joins(self) -> str:
        passed, missed = len(self._passing.passed), len(self._missed())
        if self._passing.passed_as == "joined":
            return f"joins {_ticks(passed)}" if passed else ""
        if self._passing.is_missed and not passed:
            return "catching up on a missed tick"
        return f"makes up for {_ticks(missed)}" if missed else ""

    def _replace(self) -> str:
        reason = f"replaced by the next tick of {self._row.name}"
        for run_id in cancel_active(self._db, self.ledger, self._row.source_id, reason):
            self._tell(ScheduleReplaced(self._row.name, run_id))
        return reason

    def _note_passed(self, run_id: int | None, missed: Sequence[float]) -> None:
        """The ticks before the one that was decided on; those that were missed are told of."""
        if self._passing.passed:
            self._note(self._passing.passed, self._passing.passed_as, run_id)
        if missed:
            self._tell_missed(missed, run_id)

    def _note(
        self,
        due: Sequence[float],
        outcome: Outcome,
        run_id: int | None = None,
        reason: str = "",
        *,
        was_missed: bool = False,
    ) -> int:
        return self._db.do(
            "add_ticks",
            source_id=self._row.source_id,
            schedule=self._row.name,
            version=self._row.version,
            due=to_json(list(due)),
            outcome=outcome,
            run_id=run_id,
            reason=reason,
            was_missed=was_missed,
            now=self._now,
        )

    def _tell(self, event: Event) -> None:
        self.ledger.journal(event, self._row.source_id, actor=SCHEDULER)

    def _tell_missed(self, passed: Sequence[float], run_id: int | None) -> None:
        event = ScheduleMissed(self._row.name, len(passed), passed[0], passed[-1])
        self._tell(event)
        data = {"source": self._row.source, **msgspec.structs.asdict(event), "run": run_id}
        signals = [(event.kind, to_json(data), self._row.source_id, run_id or 0)]
        self._db.do("add_signals", now=self._now, signals=to_json(signals))


def _ticks(count: int) -> str:
    return f"{count:,} tick{'' if count == 1 else 's'}"
