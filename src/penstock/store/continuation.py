"""A run that does what another has left undone."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.errors import Refused, Remedy, UsageError
from penstock.jobs.job import JobState, NewJob
from penstock.jobs.run import ENDED_RUN_STATES, RunKind, RunOptions, RunState
from penstock.jobs.run_policy import policy_of
from penstock.journal.run_events import RunContinued
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger
from penstock.store.new_jobs import add_jobs

CARRY_LIMIT = 2000


class Continued(msgspec.Struct):
    source_id: int
    state: RunState
    kind: RunKind
    options: RunOptions
    of_run_id: int | None


class Started(Exception):
    """The run is no draft any more: what was to be added to it is not."""


def run_to_continue(db: Database, run_id: int) -> Continued:
    """A run that has ended and left something undone; anything else is refused."""
    text = db.value("run_to_continue", id=run_id)
    if text is None:
        raise UsageError(f"there is no run {run_id}", code="no_run", remedy=Remedy("runs.list"))
    run = msgspec.json.decode(text, type=Continued)
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


def carry(
    db: Database,
    run_id: int,
    new_id: int,
    source_id: int,
    stages: Sequence[str],
    states: Sequence[JobState],
    actor: str,
) -> None:
    """Enqueue in the new run, which is a draft, what this one has left undone; in batches."""
    stage, key, carried = "", "", 0
    wanted = {"stages": to_json(stages), "states": to_json(states), "limit": CARRY_LIMIT}
    while True:
        with db.writing() as now:
            ledger = Ledger(db, now)
            found = db.json("undone_jobs", run_id=run_id, stage=stage, key=key, **wanted)
            known = ledger.stages(new_id)
            jobs = [
                (None, NewJob(name, of, item.encode(), known[name].priority, snapshot))
                for name, of, item, snapshot in found
            ]
            carried += len(add_jobs(db, ledger, new_id, source_id, jobs))
            if len(found) < CARRY_LIMIT:
                db.do("carry_cursors", run_id=new_id, continues=run_id)
                event = RunContinued(carried, run_id)
                ledger.journal(event, source_id, new_id, actor=actor)
            ledger.write()
            # Looked at last, when its row is locked: somebody else may carry the same and be ahead.
            if db.rows("run_state", id=new_id)[0][0] != RunState.DRAFT:
                raise Started
        if len(found) < CARRY_LIMIT:
            return
        stage, key = found[-1][:2]
