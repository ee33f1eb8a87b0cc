"""Runbooks: who follows which, how far they have come, and how it ended.

The journal has a line for each step too. It can't be asked for them: it is kept for a while only, and has no
index by kind.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from penstock.journal.event import Event
from penstock.journal.runbook_events import (
    RunbookEnded,
    RunbookStarted,
    RunbookStepDone,
    RunbookStepSkipped,
)
from penstock.store.database import LAST_ID, to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun

StepOutcome = Literal["done", "skipped"]
Ending = Literal["recovered", "abandoned"]
LONGEST_SUMMARY = 500


class ExecutionRow(msgspec.Struct, frozen=True):
    """One time that somebody followed a runbook. The target is a source, or empty for the project."""

    id: int
    runbook: str
    target: str
    started_at: float
    actor: str
    ended_at: float | None
    outcome: str


class StepRow(msgspec.Struct, frozen=True):
    """A step that was done or skipped, what came of it, and what it found."""

    step: str
    outcome: StepOutcome
    summary: str
    findings: dict[str, Any]
    at: float
    actor: str
    reason: str


class NewStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step to record; `at` is set if it was taken earlier, while the database could not be reached."""

    step: str
    outcome: StepOutcome
    actor: str
    reason: str = ""
    summary: str = ""
    findings: dict[str, Any] = {}
    at: float | None = None


class Runbooks(Noun):
    """The verbs of runbooks that are followed."""

    def open(self, runbook: str, target: str) -> ExecutionRow | None:
        """The one that has not ended, if there is one."""
        rows = self._db.rows("open_runbook_execution", runbook=runbook, target=target)
        return ExecutionRow(*rows[0]) if rows else None

    def executions(self, limit: int, before_id: int | None = None) -> list[ExecutionRow]:
        """The newest ones, newest first."""
        before = LAST_ID if before_id is None else before_id
        rows = self._db.rows("runbook_executions", before_id=before, limit=limit)
        return [ExecutionRow(*row) for row in rows]

    def steps(self, execution_id: int) -> list[StepRow]:
        """What was done and skipped in one, oldest first."""
        rows = self._db.rows("runbook_steps", id=execution_id)
        return [StepRow(row[0], row[1], row[2], _findings(row[3]), *row[4:]) for row in rows]

    def record(self, runbook: str, target: str, new: NewStep) -> ExecutionRow:
        """Write down a step, and begin the execution with the first one."""
        with self._db.writing() as now:
            ledger = Ledger(self._db, now)
            found = self._begun(ledger, runbook, target, new.actor)
            self._db.do("count_runbook_step", id=found.id)
            summary = new.summary[:LONGEST_SUMMARY]
            at = now if new.at is None else new.at
            self._db.do(
                "add_runbook_step",
                id=found.id,
                step=new.step,
                outcome=new.outcome,
                summary=summary,
                findings=to_json(new.findings),
                at=at,
                actor=new.actor,
                reason=new.reason,
            )
            about = (runbook, target, found.id, new.step, summary, new.reason, new.at or 0.0)
            is_done = new.outcome == "done"
            self._tell(
                ledger,
                RunbookStepDone(*about) if is_done else RunbookStepSkipped(*about),
                target,
                new.actor,
            )
            ledger.write()
        return found

    def end(
        self, execution: ExecutionRow, outcome: Ending, *, actor: str, reason: str = ""
    ) -> bool:
        """End an execution; False if somebody else has."""
        with self._db.writing() as now:
            if not self._db.do("end_runbook_execution", id=execution.id, now=now, outcome=outcome):
                return False
            ledger = Ledger(self._db, now)
            about = (execution.runbook, execution.target, execution.id, outcome, reason)
            self._tell(ledger, RunbookEnded(*about), execution.target, actor)
            ledger.write()
        return True

    def _begun(self, ledger: Ledger, runbook: str, target: str, actor: str) -> ExecutionRow:
        about = {"runbook": runbook, "target": target}
        is_new = self._db.do("add_runbook_execution", **about, now=ledger.now, actor=actor)
        [row] = self._db.rows("open_runbook_execution", **about)
        found = ExecutionRow(*row)
        if is_new:
            self._tell(ledger, RunbookStarted(runbook, target, found.id), target, actor)
        return found

    def _tell(self, ledger: Ledger, event: Event, target: str, actor: str) -> None:
        source_id = self._db.value("source_id", key=target) if target else None
        ledger.journal(event, source_id, actor=actor)


def _findings(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])
