"""Advancing runs: gather stages whose turn has come, and the end of a run that has nothing left to do."""

from __future__ import annotations

import msgspec

from penstock.jobs.job import NewJob
from penstock.jobs.run import (
    NO_OPTIONS,
    Plan,
    RunKind,
    RunOptions,
    RunState,
    StageCount,
    advance,
    cut_words,
)
from penstock.jobs.run_policy import policy_of
from penstock.jobs.transitions import RUN_MOVES
from penstock.journal.run_events import ENDS
from penstock.store.accounts import end_account
from penstock.store.budgets import stopped_by_budget
from penstock.store.database import Database
from penstock.store.field_counts import note_drift
from penstock.store.health import RunEnd, end_of_probe, note_ends
from penstock.store.hooks import Ended, tell_ends
from penstock.store.ledger import Ledger
from penstock.store.new_jobs import add_jobs
from penstock.store.promises import note_broken


class _Advancing(msgspec.Struct):
    source_id: int
    state: RunState
    plan: Plan
    counts: dict[str, StageCount]
    kind: RunKind = RunKind.FULL
    options: RunOptions = NO_OPTIONS


_decode_advancing = msgspec.json.Decoder(_Advancing).decode


def advance_runs(db: Database, ledger: Ledger, now: float) -> list[int]:
    """Start gather stages whose turn has come, and end the runs that have nothing left to do."""
    ended: list[RunEnd] = []
    for run_id in ledger.runs_with_a_closed_stage():
        text = db.value("run_to_advance", run_id=run_id)
        if text is None:
            continue
        run = _decode_advancing(text)
        has_failed = any(count.quarantined for count in run.counts.values())
        stopped = stopped_by_budget(db, run_id) if has_failed else {}
        step = advance(run.plan, run.counts, stopped)
        if step.start:
            jobs = [(None, _gather_job(run.plan, name)) for name in step.start]
            add_jobs(db, ledger, run_id, run.source_id, jobs)
            ledger.write_counts()
        elif step.ends_as is not None:
            # A run that was never begun and has nothing left had all its jobs cancelled.
            ends_as = RunState.CANCELLED if run.state is RunState.QUEUED else step.ends_as
            reason, is_good = step.reason, False
            if policy_of(run.kind, run.options).is_one_item:
                ends_as, reason, is_good = end_of_probe(db, run_id, run.counts, ends_as, reason)
            ends_as, reason = end_account(db, ledger, run_id, ends_as, reason)
            reason = reason or cut_words(run.counts, run.options.bounds)
            db.do("end_run_if_active", id=run_id, state=ends_as, end_reason=reason, now=now)
            why = reason or RUN_MOVES.get((run.state, ends_as), "")
            ledger.journal(ENDS[ends_as](why), run.source_id, run_id, actor="penstock")
            about = (run.source_id, run_id, run.kind, run.options, ends_as, why, is_good)
            ended.append(RunEnd(*about))
    note_ends(db, ledger, ended)
    note_broken(db, ledger, ended)
    note_drift(db, ledger, ended)
    tell_ends(db, ledger, [Ended(e.run_id, e.source_id, e.state, e.kind, e.reason) for e in ended])
    return [end.run_id for end in ended]


def _gather_job(plan: Plan, name: str) -> NewJob:
    [stage] = [stage for stage in plan.stages if stage.name == name]
    return NewJob(stage=name, key="gather", item=b"null", priority=stage.priority)
