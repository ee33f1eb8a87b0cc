"""Runs and jobs as an operator steers them: start, enqueue, pause, resume, cancel, retry."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.errors import Refused, UsageError
from penstock.jobs.job import JobState, NewJob, bounded_key
from penstock.jobs.run import (
    NO_OPTIONS,
    Plan,
    RunFacts,
    RunKind,
    RunOptions,
    RunState,
    bounds_of,
)
from penstock.jobs.run_policy import policy_of
from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.journal.event import Reasoned
from penstock.journal.job_events import JobCancelled, JobRequeued
from penstock.journal.run_events import (
    BEGINS,
    RunCancelled,
    RunJobsAdded,
    RunPaused,
    RunReopened,
    RunResumed,
    RunVersionChanged,
)
from penstock.journal.source_events import SourcePaused, SourceResumed
from penstock.schedules.overlap import Active
from penstock.store.adding import add_jobs
from penstock.store.advancing import advance_runs
from penstock.store.database import Database, to_json
from penstock.store.failing import forget_causes
from penstock.store.health import RunEnd
from penstock.store.ledger import Ledger, StageFacts
from penstock.store.outbox import Ended, tell_ends
from penstock.store.promises import note_broken
from penstock.store.store import Enqueued

ROOT_KEY = "root"
RETRY_LIMIT = 1000
SCHEDULER = "scheduler"


class Runs:
    """The verbs that start, steer and end work."""

    _db: Database

    def ensure_sources(self, keys: Sequence[str]) -> dict[str, int]:
        """Make every source known; answers with the id of each."""
        known: dict[str, int] = self._db.json("source_ids")
        if any(key not in known for key in keys):
            with self._db.writing() as now:
                self._db.do("add_sources", keys=to_json(sorted(keys)), now=now)
            known = self._db.json("source_ids")
        return {key: known[key] for key in keys}

    def start_run(
        self,
        source_id: int,
        kind: RunKind,
        plan: Plan,
        pipeline_version: str,
        *,
        key: str,
        actor: str,
        reason: str = "",
        options: RunOptions = NO_OPTIONS,
        of_run_id: int | None = None,
        is_draft: bool = False,
        joins_active: bool = False,
    ) -> tuple[int, bool]:
        """Start a run, or answer with the one that this key has started already.

        Answers (run, is_new). The run and the jobs of its first stages exist together or not at all. With
        `joins_active` an active run of the same kind is the answer, if there is one.
        """
        with self._db.writing() as now:
            known = self._db.value("known_run", source_id=source_id, key=key)
            if known is None and joins_active:
                # Under its lane's lock: of many who start the same source at once, one does.
                self._db.lock_lanes([source_id])
                known = self._db.value("active_run_of_kind", source_id=source_id, kind=kind)
            if known is None:
                about = (source_id, kind, plan, pipeline_version, key, actor, reason)
                run_id = add_run(self._db, now, *about, options, of_run_id, is_draft)
                if run_id is not None:
                    return run_id, True
                # Somebody else was faster by a moment, and has committed by now.
                known = self._db.value("known_run", source_id=source_id, key=key)
            return int(known), False

    def run_facts(self, run_ids: Sequence[int]) -> dict[int, RunFacts]:
        """What workers need to know of these runs."""
        found = self._db.decoded("run_facts", list[RunFacts], ids=to_json(sorted(run_ids)))
        return {facts.id: facts for facts in found}

    def restamp(self, run_id: int, known: str, version: str, actor: str) -> bool:
        """A worker performs a run with another version than the run says: from now on it says that one.

        False if somebody else has changed it meanwhile.
        """
        with self._db.writing() as now:
            rows = self._db.rows("restamp_if_known", id=run_id, known=known, version=version)
            if rows:
                ledger = Ledger(self._db, now)
                ledger.journal(RunVersionChanged(version, known), rows[0][0], run_id, actor=actor)
                ledger.write()
            return bool(rows)

    def enqueue(self, run_id: int, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Add jobs to a run that has not ended; a known key answers with the job it has, unchanged."""
        with self._db.writing() as now:
            source_id = self._source_of_open_run(run_id)
            ledger = Ledger(self._db, now)
            self._refuse_unknown_stages(ledger, run_id, jobs)
            new = add_jobs(self._db, ledger, run_id, source_id, [(None, job) for job in jobs])
            ledger.journal(RunJobsAdded(len(new)), source_id, run_id)
            ledger.write()
            if self._db.is_shared:
                self._source_of_open_run(run_id)  # it may have ended before its row was locked
            return self._answers(run_id, jobs, new)

    def _source_of_open_run(self, run_id: int) -> int:
        row = self._db.rows("run_state", id=run_id)
        if not row:
            raise UsageError(f"there is no run {run_id}")
        state, source_id = row[0]
        if state not in (RunState.DRAFT, RunState.QUEUED, RunState.RUNNING, RunState.PAUSED):
            raise Refused(f"run {run_id} is {state}; it takes no more jobs")
        return int(source_id)

    def _refuse_unknown_stages(self, ledger: Ledger, run_id: int, jobs: Sequence[NewJob]) -> None:
        known = ledger.stages(run_id)
        unknown = {job.stage for job in jobs} - set(known)
        if unknown:
            names = ", ".join(sorted(unknown))
            raise UsageError(f"run {run_id} has no stage {names}; it has {', '.join(known)}")

    def _answers(self, run_id: int, jobs: Sequence[NewJob], new: set[int]) -> list[Enqueued]:
        if len(new) == len(jobs):  # the ids were handed out in the order of the jobs
            return [Enqueued(job_id, True) for job_id in sorted(new)]
        keys = [(job.stage, bounded_key(job.key)) for job in jobs]
        rows = self._db.json("jobs_by_key", run_id=run_id, keys=to_json(keys))
        ids = {(stage, key): job_id for job_id, stage, key in rows}
        return [Enqueued(ids[key], ids[key] in new) for key in keys]

    # Sources.

    def pause_source(self, source_id: int, actor: str, reason: str) -> bool:
        """Start nothing more of this source until it is resumed; what runs goes on."""
        return self._steer_source("pause_source_if_running", SourcePaused(reason), source_id, actor)

    def resume_source(self, source_id: int, actor: str, reason: str) -> bool:
        return self._steer_source(
            "resume_source_if_paused", SourceResumed(reason), source_id, actor
        )

    def _steer_source(self, query: str, event: Reasoned, source_id: int, actor: str) -> bool:
        with self._db.writing() as now:
            values = {"id": source_id, "now": now, "reason": event.reason}
            if not self._db.do(query, **values):
                return False
            ledger = Ledger(self._db, now)
            ledger.journal(event, source_id, actor=actor)
            ledger.write()
            return True

    # Runs.

    def pause_run(self, run_id: int, actor: str, reason: str) -> bool:
        return self._steer_run("pause_run_if_active", RunPaused(reason), run_id, actor)

    def resume_run(self, run_id: int, actor: str, reason: str) -> bool:
        return self._steer_run("resume_run_if_paused", RunResumed(reason), run_id, actor)

    def _steer_run(self, query: str, event: Reasoned, run_id: int, actor: str) -> bool:
        with self._db.writing() as now:
            source_id = self._db.value(query, id=run_id, now=now)
            if source_id is None:
                return False
            ledger = Ledger(self._db, now)
            ledger.journal(event, source_id, run_id, actor=actor)
            ledger.write()
            return True

    def cancel_run(self, run_id: int, actor: str, reason: str) -> bool:
        """End a run now: running attempts are fenced off, the rest is swept in batches.

        Until `sweep_cancelled` is done the queued jobs still stand in their old state, but nothing
        claims a job of a cancelled run.
        """
        with self._db.writing() as now:
            ledger = Ledger(self._db, now)
            if not cancel_run(self._db, ledger, run_id, actor, reason):
                return False
            ledger.write()
        return True

    def sweep_cancelled(self, limit: int = 2000) -> int:
        """Cancel a batch of the open jobs of cancelled runs; answers how many, 0 when none is left."""
        while (run_id := self._db.value("unswept_run")) is not None:
            swept, is_swept = self._sweep(run_id, limit)
            if swept or not is_swept:  # what is left is in somebody's hands just now: next time
                return swept
        return 0

    def _sweep(self, run_id: int, limit: int) -> tuple[int, bool]:
        with self._db.writing() as now:
            jobs = self._db.json("open_of_run", run_id=run_id, limit=limit)
            ledger = Ledger(self._db, now)
            ids = [job_id for job_id, _, _ in jobs]
            self._db.do("cancel_jobs_if_open", now=now, ids=to_json(ids))
            for _, stage, state in jobs:
                ledger.moved(run_id, stage, JobState(state), JobState.CANCELLED)
            ledger.journal_jobs(JobCancelled(with_run=run_id), ids, "upkeep")
            ledger.write()
            is_swept = len(jobs) < limit and self._db.do("mark_swept", run_id=run_id, now=now) > 0
            return len(jobs), is_swept

    # Jobs.

    def cancel_job(self, job_id: int, actor: str, reason: str) -> bool:
        """Cancel one open job; a running attempt is fenced off and its late result changes nothing."""
        with self._db.writing() as now:
            leaves, _ = self._state_of(job_id)
            if leaves not in (*OPEN_JOB_STATES, JobState.QUARANTINED):
                return False
            row = self._db.rows("cancel_job_if_open", id=job_id, leaves=leaves, now=now)[0]
            run_id, source_id, stage, attempt = row
            ledger = Ledger(self._db, now)
            ledger.moved(run_id, stage, leaves, JobState.CANCELLED)
            ledger.journal(JobCancelled(reason), source_id, run_id, job_id, attempt, actor)
            ledger.write_counts()
            advance_runs(self._db, ledger, now)
            ledger.write()
            return True

    def retry_job(self, job_id: int, actor: str, reason: str) -> bool:
        """Queue a quarantined or waiting job again, with fresh tries; its run opens again if it had ended.

        Not in a cancelled run, which never opens again.
        """
        forget_causes(self._db, [job_id])
        with self._db.writing() as now:
            leaves, run_id = self._state_of(job_id)
            if leaves not in (JobState.QUARANTINED, JobState.WAITING):
                return False
            self._db.lock_runs([run_id])
            if self._db.value("run_state_of_job", id=job_id) == RunState.CANCELLED:
                return False
            row = self._db.rows("retry_job_if_stopped", id=job_id, leaves=leaves, now=now)[0]
            run_id, source_id, stage, attempt = row
            ledger = Ledger(self._db, now)
            ledger.moved(run_id, stage, leaves, JobState.QUEUED)
            ledger.journal(JobRequeued(reason), source_id, run_id, job_id, attempt, actor)
            self._reopen(ledger, run_id, actor, reason)
            ledger.write()
            return True

    def retry_failed(self, run_id: int, actor: str, reason: str) -> int:
        """Queue a run's quarantined jobs again, and only those, in batches; answers how many."""
        with self._db.writing():
            self._db.do("forget_causes_of_run", run_id=run_id)
        total = 0
        while True:
            retried = self._retry_batch(run_id, actor, reason)
            total += retried
            if retried < RETRY_LIMIT:
                return total

    def _retry_batch(self, run_id: int, actor: str, reason: str) -> int:
        with self._db.writing() as now:
            # Before its jobs, of which none is waited for: cancelled meanwhile, they would stay queued.
            self._db.lock_runs([run_id])
            found = self._db.rows("run_state", id=run_id)
            if not found:
                raise UsageError(f"there is no run {run_id}")
            state, source_id = found[0]
            if state == RunState.CANCELLED:
                return 0
            ledger = Ledger(self._db, now)
            jobs = self._db.rows(
                "retry_quarantined_of_run", run_id=run_id, limit=RETRY_LIMIT, now=now
            )
            for job_id, stage, attempt in jobs:
                ledger.moved(run_id, stage, JobState.QUARANTINED, JobState.QUEUED)
                ledger.journal(JobRequeued(reason), source_id, run_id, job_id, attempt, actor)
            if jobs:
                self._reopen(ledger, run_id, actor, reason)
            ledger.write()
            return len(jobs)

    def _reopen(self, ledger: Ledger, run_id: int, actor: str, reason: str) -> None:
        source_id = self._db.value("reopen_run_if_ended_badly", id=run_id, now=ledger.now)
        if source_id is not None:
            ledger.journal(RunReopened(reason), source_id, run_id, actor=actor)

    def _state_of(self, job_id: int) -> tuple[JobState, int]:
        """A job's state and run; nobody else moves it before the transaction ends."""
        rows = self._db.rows("job_state", id=job_id)
        if not rows:
            raise UsageError(f"there is no job {job_id}")
        return JobState(rows[0][0]), rows[0][1]


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
) -> int | None:
    """A run and its first jobs, in the transaction of another verb; None if its key is known."""
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
        pipeline_version=pipeline_version,
        actor=actor,
        reason=reason,
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
    roots = [
        (None, NewJob(stage.name, ROOT_KEY, b"null", stage.priority))
        for stage in plan.stages
        if not stage.after and policy.begins_with != "items"
    ]
    add_jobs(db, ledger, run_id, source_id, roots)
    ledger.write()
    return run_id


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
