"""What becomes of a schedule's ticks: one starts a run, waits, joins another or is declined.

A tick starts one run, ever: its row (source, schedule, due_at) is written in the transaction that adds the
run, and whoever finds it there does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from penstock.journal.event import Event
from penstock.journal.service_events import (
    ScheduleDenied,
    ScheduleMissed,
    ScheduleReplaced,
    ScheduleSkipped,
    not_ended,
)
from penstock.schedules.overlap import Active, meet
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger
from penstock.store.run_transitions import SCHEDULER, active_runs_of, add_run, cancel_active
from penstock.store.schedule_rows import Outcome, Passed, Passing, Start


class TickDecision:
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
        return f"covers {_ticks(missed, 'missed ')}" if missed else ""

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


def _ticks(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}tick{'' if count == 1 else 's'}"
