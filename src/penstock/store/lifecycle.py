"""The lifecycle beyond start and end: drafts, runs that continue others, and maintenance.

Maintenance is a gate and not a state: a row says that nothing of its scope starts. Nothing else is
touched, so nothing has to be put back. A single job that is set aside remembers where it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.errors import Refused, Remedy, UsageError
from penstock.jobs.job import JobState, NewJob
from penstock.jobs.run import (
    ENDED_RUN_STATES,
    Plan,
    RunKind,
    RunOptions,
    RunState,
    continued_stages,
)
from penstock.jobs.run_policy import policy_of
from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.journal.event import Event
from penstock.journal.job_events import JobHeld, JobUnheld
from penstock.journal.run_events import RunContinued, RunQueued
from penstock.journal.source_events import ProjectHeld, ProjectUnheld, SourceHeld, SourceUnheld
from penstock.store.adding import add_jobs
from penstock.store.advancing import advance_runs
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger
from penstock.store.rows import HoldRow
from penstock.store.runs import Runs

CARRY_LIMIT = 2000
# The scope of a hold of everything; any other is a source's key.
WHOLE_PROJECT = ""


class _Continued(msgspec.Struct):
    source_id: int
    state: RunState
    kind: RunKind
    options: RunOptions
    of_run_id: int | None


class _Started(Exception):
    """The run is no draft any more: what was to be added to it is not."""


class Lifecycle(Runs):
    """Drafts, continued runs, holds."""

    _db: Database

    # Drafts.

    def start_draft(self, run_id: int, actor: str, reason: str) -> bool:
        """Let a draft begin: from now on its jobs may start."""
        with self._db.writing() as now:
            source_id = self._db.value("start_run_if_draft", id=run_id, now=now)
            if source_id is None:
                return False
            ledger = Ledger(self._db, now)
            ledger.journal(RunQueued(reason), source_id, run_id, actor=actor)
            # What became of its jobs while it was a draft may have left a stage with nothing to do.
            ledger.touch(run_id)
            advance_runs(self._db, ledger, now)
            ledger.write()
            return True

    def start_recovered(self, actor: str) -> list[int]:
        """Start what was put off because its source was degraded, where it is not any more."""
        found: list[int] = self._db.json("recovered_drafts")
        return [
            run_id
            for run_id in found
            if self.start_draft(run_id, actor, "its source has recovered")
        ]

    # Continuing.

    def continue_run(
        self, run_id: int, plan: Plan, pipeline_version: str, actor: str, reason: str
    ) -> tuple[int, bool]:
        """Start a run that does what this one has left undone; answers (run, is_new).

        In batches, as a draft until all is carried over: whoever is stopped on the way asks again and
        goes on where it was. What this run has done is done in that one, too: a job with the key of
        one that was done ends skipped.
        """
        left = self._ended_run(run_id)
        while left.state is RunState.CANCELLED and self.sweep_cancelled():
            pass
        stages = continued_stages(plan) if policy_of(left.kind).skips_what_was_done else ()
        states = [JobState.QUARANTINED]
        if left.state is RunState.CANCELLED:
            # With it; in any other run, a person meant that very job. Some may not be swept yet.
            states += [JobState.CANCELLED, *OPEN_JOB_STATES]
        options = msgspec.structs.replace(
            left.options, continues=run_id, continued_stages=stages, waits_for_recovery=False
        )
        new_id, _ = self.start_run(
            left.source_id,
            left.kind,
            plan,
            pipeline_version,
            key=f"continues:{run_id}",
            actor=actor,
            reason=reason or f"continues run {run_id}",
            options=options,
            of_run_id=left.of_run_id,
            is_draft=True,
        )
        try:
            self._carry(run_id, new_id, left.source_id, stages, states)
        except _Started:
            return new_id, False
        return new_id, self.start_draft(new_id, actor, reason or f"continues run {run_id}")

    def _ended_run(self, run_id: int) -> _Continued:
        text = self._db.value("run_to_continue", id=run_id)
        if text is None:
            raise UsageError(f"there is no run {run_id}", code="no_run", remedy=Remedy("runs.list"))
        run = msgspec.json.decode(text, type=_Continued)
        if run.state not in ENDED_RUN_STATES:
            raise Refused(f"run {run_id} has not ended: it is {run.state}")
        policy = policy_of(run.kind, run.options)
        if not policy.can_be_continued:
            raise Refused(
                f"run {run_id} is {policy.words}, which is not continued",
                "retry what failed, or do it again",
                code="run_not_continued",
                remedy=Remedy("runs.retry", run_id),
            )
        if run.state is RunState.COMPLETED:
            raise Refused(f"run {run_id} is completed: there is nothing left of it")
        return run

    def _carry(
        self,
        run_id: int,
        new_id: int,
        source_id: int,
        stages: Sequence[str],
        states: Sequence[JobState],
    ) -> None:
        stage, key, carried = "", "", 0
        wanted = {"stages": to_json(stages), "states": to_json(states), "limit": CARRY_LIMIT}
        while True:
            with self._db.writing() as now:
                ledger = Ledger(self._db, now)
                found = self._db.json("undone_jobs", run_id=run_id, stage=stage, key=key, **wanted)
                known = ledger.stages(new_id)
                jobs = [
                    (None, NewJob(name, of, item.encode(), known[name].priority, snapshot))
                    for name, of, item, snapshot in found
                ]
                carried += len(add_jobs(self._db, ledger, new_id, source_id, jobs))
                if len(found) < CARRY_LIMIT:
                    self._db.do("carry_cursors", run_id=new_id, continues=run_id)
                    event = RunContinued(carried, run_id)
                    ledger.journal(event, source_id, new_id, actor="penstock")
                ledger.write()
                # Looked at last, when its row is locked: somebody else may carry the same and be ahead.
                if self._db.rows("run_state", id=new_id)[0][0] != RunState.DRAFT:
                    raise _Started
            if len(found) < CARRY_LIMIT:
                return
            stage, key = found[-1][:2]

    # Maintenance.

    def hold(self, scope: str, actor: str, reason: str) -> bool:
        """Start nothing of a source, or of anything ('' ), until it is unheld; False if it is held.

        What runs goes on; new work is accepted, and waits.
        """
        with self._db.writing() as now:
            source_id, lanes = self._scope(scope)
            # A claim that has looked already is waited for: what starts after this was not there.
            self._db.lock_lanes(lanes)
            if not self._db.do("add_hold", scope=scope, now=now, actor=actor, reason=reason):
                return False
            event = SourceHeld(reason) if scope != WHOLE_PROJECT else ProjectHeld(reason)
            self._tell_hold(event, source_id, now, actor)
            return True

    def unhold(self, scope: str, actor: str, reason: str) -> bool:
        """Let go on what was held under this very scope; False if it was not."""
        with self._db.writing() as now:
            source_id, _ = self._scope(scope)
            if not self._db.do("drop_hold", scope=scope):
                return False
            event = SourceUnheld(reason) if scope != WHOLE_PROJECT else ProjectUnheld(reason)
            self._tell_hold(event, source_id, now, actor)
            return True

    def _scope(self, scope: str) -> tuple[int | None, list[int]]:
        known: dict[str, int] = self._db.json("source_ids")
        if scope == WHOLE_PROJECT:
            return None, sorted(known.values())
        if scope not in known:
            raise UsageError(
                f"there is no source {scope!r}", code="no_source", remedy=Remedy("sources.list")
            )
        return known[scope], [known[scope]]

    def _tell_hold(self, event: Event, source_id: int | None, now: float, actor: str) -> None:
        ledger = Ledger(self._db, now)
        ledger.journal(event, source_id, actor=actor)
        ledger.write()

    def holds(self) -> list[HoldRow]:
        """What is held, since when, by whom and why."""
        return self._db.decoded("holds", list[HoldRow])

    def hold_job(self, job_id: int, actor: str, reason: str) -> bool:
        """Set one queued or waiting job aside; False if it is neither."""
        with self._db.writing() as now:
            leaves, _ = self._state_of(job_id)
            rows = self._db.rows("hold_job_if_open", id=job_id, leaves=leaves, now=now)
            if not rows:
                return False
            run_id, source_id, stage, attempt = rows[0]
            ledger = Ledger(self._db, now)
            ledger.moved(run_id, stage, leaves, JobState.HELD)
            ledger.journal(JobHeld(reason), source_id, run_id, job_id, attempt, actor)
            ledger.write()
            return True

    def unhold_job(self, job_id: int, actor: str, reason: str) -> bool:
        """Put a job back to where it was; False if it is not held. What is overdue by now starts now."""
        with self._db.writing() as now:
            self._state_of(job_id)
            rows = self._db.rows("unhold_job_if_held", id=job_id, now=now)
            if not rows:
                return False
            run_id, source_id, stage, attempt, state = rows[0]
            ledger = Ledger(self._db, now)
            ledger.moved(run_id, stage, JobState.HELD, JobState(state))
            ledger.journal(JobUnheld(reason), source_id, run_id, job_id, attempt, actor)
            ledger.write()
            return True
