"""Runs that begin and end, each in the transaction of another verb."""

from __future__ import annotations

import msgspec

from penstock.jobs.job import JobState, NewJob
from penstock.jobs.run import NO_OPTIONS, Plan, RunFacts, RunKind, RunOptions, RunState, bounds_of
from penstock.jobs.run_policy import policy_of
from penstock.journal.job_events import JobCancelled
from penstock.journal.run_events import BEGINS, RunCancelled, RunReopened
from penstock.schedules.overlap import Active
from penstock.store.canary_parts import Asked, parted_run
from penstock.store.database import Database, to_json
from penstock.store.health import RunEnd
from penstock.store.hooks import Ended, tell_ends
from penstock.store.ledger import Ledger, StageFacts
from penstock.store.new_jobs import add_jobs
from penstock.store.onboarding_refusals import refuse_start
from penstock.store.promises import note_broken

ROOT_KEY = "root"
# The reason of a run that is started when another has ended.
FOLLOWS = "follows run"
SCHEDULER = "scheduler"


def add_run(
    db: Database,
    now: float,
    source_id: int,
    kind: RunKind,
    plan: Plan,
    pipeline_version: str,
    key: str,
    actor: str,
    reason: str,
    options: RunOptions = NO_OPTIONS,
    of_run_id: int | None = None,
    is_draft: bool = False,
    for_drains: bool = False,
) -> int | None:
    """A run and its first jobs, in the transaction of another verb; None if its key is known.

    Where a canary has a part of the source, its release performs that part of it, or all.
    """
    [(onboarding, *canary)] = db.rows("start_terms", source_id=source_id)
    refuse_start(db, source_id, onboarding, kind)
    asked = Asked(kind, plan, pipeline_version, options, for_drains)
    parted = None if is_draft else parted_run(canary, asked)
    if parted is not None:
        asked = parted.live
    run_id = _add_run(db, now, source_id, asked, key, actor, reason, of_run_id, is_draft=is_draft)
    if run_id is not None and parted is not None:
        follower_id = None
        if parted.follower is not None:
            about = (parted.key_of(run_id), actor, f"{FOLLOWS} {run_id}", run_id)
            follower_id = _add_run(db, now, source_id, parted.follower, *about, is_draft=True)
        parted.note(db, run_id, follower_id)
    return run_id


def _add_run(
    db: Database,
    now: float,
    source_id: int,
    asked: Asked,
    key: str,
    actor: str,
    reason: str,
    of_run_id: int | None,
    *,
    is_draft: bool,
) -> int | None:
    kind, plan, options = asked.kind, asked.plan, asked.options
    policy = policy_of(kind, options)
    bounds = bounds_of(plan, options.pages) if policy.is_bounded else {}
    options = msgspec.structs.replace(options, bounds=bounds)
    state = RunState.DRAFT if is_draft else RunState.QUEUED
    run_id: int | None = db.value(
        "add_run",
        source_id=source_id,
        kind=kind,
        state=state,
        options=to_json(options),
        of_run_id=of_run_id,
        key=key,
        plan=to_json(plan),
        pipeline_version=asked.pipeline_version,
        actor=actor,
        reason=reason,
        for_drains=asked.for_drains,
        now=now,
    )
    if run_id is None:
        return None
    db.later("add_stages", run_id=run_id, stages=to_json(plan.stages))
    ledger = Ledger(db, now)
    if options.continues is None:
        facts = {
            each.name: StageFacts(each.unit, each.priority, None, kind, bounds.get(each.name))
            for each in plan.stages
        }
        ledger.made(run_id, facts)
    ledger.journal(BEGINS[state](reason), source_id, run_id, actor=actor)
    roots = [] if policy.begins_with == "items" else _roots(plan)
    add_jobs(db, ledger, run_id, source_id, roots)
    ledger.write()
    return run_id


def _roots(plan: Plan) -> list[tuple[int | None, NewJob]]:
    """The first jobs of a run: one for each stage that comes after no other."""
    return [
        (None, NewJob(stage.name, ROOT_KEY, b"null", stage.priority))
        for stage in plan.stages
        if not stage.after
    ]


def cancel_run(db: Database, ledger: Ledger, run_id: int, actor: str, reason: str) -> bool:
    """End a run in the transaction of another verb; False if it has ended already."""
    source_id = db.value("cancel_run_if_active", id=run_id, now=ledger.now)
    if source_id is None:
        return False
    stopped = db.rows("cancel_running_of_run", run_id=run_id, now=ledger.now)
    for job_id, stage, attempt in stopped:
        ledger.moved(run_id, stage, JobState.RUNNING, JobState.CANCELLED)
        ledger.journal(JobCancelled(reason), source_id, run_id, job_id, attempt, actor)
    ledger.journal(RunCancelled(reason), source_id, run_id, actor=actor)
    ledger.write_counts()
    [facts] = db.decoded("run_facts", list[RunFacts], ids=to_json([run_id]))
    about = (source_id, run_id, facts.kind, facts.options, RunState.CANCELLED, reason)
    note_broken(db, ledger, [RunEnd(*about)])
    tell_ends(db, ledger, [Ended(run_id, source_id, RunState.CANCELLED, facts.kind, reason)])
    return True


def reopen(db: Database, ledger: Ledger, run_id: int, actor: str, reason: str) -> None:
    """Let a run that has ended badly go on, because one of its jobs was queued again."""
    source_id = db.value("reopen_run_if_ended_badly", id=run_id, now=ledger.now)
    if source_id is not None:
        ledger.journal(RunReopened(reason), source_id, run_id, actor=actor)


def active_run_of(db: Database, source_id: int) -> int | None:
    """A run that has not ended and does what the source's schedule would do again."""
    found = db.value("active_run_of", source_id=source_id)
    return None if found is None else int(found)


def active_runs_of(db: Database, source_id: int) -> list[Active]:
    """All of them, the oldest first."""
    return [Active(*row) for row in db.json("active_runs_of", source_id=source_id)]


def cancel_active(db: Database, ledger: Ledger, source_id: int, reason: str) -> list[int]:
    """End the runs that hold up a source's schedule, under the source's lock; answers which."""
    cancelled: list[int] = []
    while (run_id := active_run_of(db, source_id)) is not None:
        cancel_run(db, ledger, run_id, SCHEDULER, reason)
        cancelled.append(run_id)
    return cancelled
