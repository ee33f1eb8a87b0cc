"""Jobs: enqueued, held, retried, cancelled one by one; found, and looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import Refused, Remedy, UsageError
from penstock.jobs.job import JobState, NewJob, bounded_key
from penstock.jobs.run import RunState
from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.journal.job_events import (
    JobCancelled,
    JobHeld,
    JobQuarantined,
    JobRequeued,
    JobUnheld,
)
from penstock.journal.run_events import RunJobsAdded
from penstock.store.database import to_json
from penstock.store.ledger import Ledger
from penstock.store.new_jobs import add_jobs
from penstock.store.noun import Noun
from penstock.store.rows import JobDetail, JobRow, Overview
from penstock.store.run_transitions import reopen
from penstock.store.sources import source_id_of
from penstock.store.stories import Story, story_of
from penstock.store.turn.failures import forget_causes
from penstock.store.turn.run_progress import advance_runs

# So many queued jobs are put in order in a blink.
MANY = 100_000
# A job is looked for by its key in so many of the newest runs.
LOOKED_AT_RUNS = 200
# Of a stage that a budget has no room for, in one transaction.
SET_ASIDE_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Enqueued:
    job_id: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class JobFilter:
    run_id: int | None = None
    source: str | None = None
    stage: str | None = None
    states: tuple[JobState, ...] = ()
    limit: int = 50
    after_id: int = 0


class Jobs(Noun):
    """The verbs of single jobs, and of streams, which are jobs that do not end by themselves."""

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

    def parents(self, job_ids: Sequence[int]) -> dict[int, int]:
        """The jobs that these were yielded by; those without one are left out."""
        found = self._db.json("parents_of_jobs", ids=to_json(sorted(job_ids)))
        return dict(found)

    def cancel(self, job_id: int, actor: str, reason: str) -> bool:
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

    def retry(self, job_id: int, actor: str, reason: str) -> bool:
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
            reopen(self._db, ledger, run_id, actor, reason)
            ledger.write()
            return True

    def hold(self, job_id: int, actor: str, reason: str) -> bool:
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

    def unhold(self, job_id: int, actor: str, reason: str) -> bool:
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

    def _state_of(self, job_id: int) -> tuple[JobState, int]:
        """A job's state and run; nobody else moves it before the transaction ends."""
        rows = self._db.rows("job_state", id=job_id)
        if not rows:
            raise UsageError(f"there is no job {job_id}")
        return JobState(rows[0][0]), rows[0][1]

    def set_aside(
        self, run_id: int, stage: str, reason: str, actor: str, limit: int = SET_ASIDE_LIMIT
    ) -> int:
        """Quarantine queued jobs of this stage, as `budget`, before they begin; answers how many.

        Each would come to the same by itself, a claim and an end for each; they keep all their tries.
        """
        with self._db.writing() as now:
            # Before its jobs, of which none is waited for: paused or cancelled meanwhile, they stay.
            self._db.lock_runs([run_id])
            [(state, source_id)] = self._db.rows("run_state", id=run_id)
            if state != RunState.RUNNING:
                return 0
            ledger = Ledger(self._db, now)
            about = {"run_id": run_id, "stage": stage, "limit": limit}
            jobs = self._db.rows("set_aside_if_queued", now=now, **about)
            for job_id, attempt in jobs:
                ledger.moved(run_id, stage, JobState.QUEUED, JobState.QUARANTINED)
                event = JobQuarantined("budget", reason)
                ledger.journal(event, source_id, run_id, job_id, attempt, actor, worker=actor)
            failures = [(job_id, attempt, "budget", reason, "", "", 1) for job_id, attempt in jobs]
            if failures:
                self._db.do("note_failures", now=now, failures=to_json(failures))
            ledger.write_counts()
            advance_runs(self._db, ledger, now)
            ledger.write()
            return len(jobs)

    def find(self, wanted: JobFilter) -> list[JobRow]:
        """Jobs in the order they were enqueued."""
        where = {
            "after_id": wanted.after_id,
            "run_id": wanted.run_id,
            "source_id": source_id_of(self._db, wanted.source),
            "stage": wanted.stage,
            "limit": wanted.limit,
        }
        if wanted.states == (JobState.QUARANTINED,):
            ids = self._db.value("find_quarantined", **where)
        elif wanted.states and self._are_few(wanted.states):
            ids = self._db.value("find_live", states=to_json(wanted.states), **where)
        else:
            states = to_json(wanted.states) if wanted.states else None
            ids = self._db.value("find_jobs", states=states, **where)
        return self._db.decoded("jobs", list[JobRow], ids=ids)

    def _are_few(self, states: Sequence[JobState]) -> bool:
        """Whether jobs in these states are found sooner among themselves than among all.

        Of a long queue, the first are soon met by whoever begins at the oldest job that there is.
        """
        if not set(states) <= set(OPEN_JOB_STATES):
            return False
        return (
            JobState.QUEUED not in states
            or self._db.decoded("overview", Overview, now=self._db.now()).queued <= MANY
        )

    def get(self, job_id: int) -> JobRow | None:
        found = self._db.decoded("jobs", list[JobRow], ids=to_json([job_id]))
        return found[0] if found else None

    def detail(self, job_id: int) -> JobDetail:
        """What a job was enqueued with, and where its last attempt failed."""
        return self._db.decoded("job_detail", JobDetail, id=job_id)

    def children(self, job: JobRow, limit: int) -> list[JobRow]:
        """The first jobs that a job has enqueued."""
        ids = self._db.json("first_children_of", id=job.id, run_id=job.run_id, limit=limit)
        return self._db.decoded("jobs", list[JobRow], ids=to_json(ids))

    def last_of(self, source_id: int, stage: str, key: str) -> int | None:
        """The newest job for this stage and key in the newest runs of a source."""
        about = {"source_id": source_id, "stage": stage, "key": key, "runs": LOOKED_AT_RUNS}
        found: int | None = self._db.value("last_job_of", **about)
        return found

    def has_startable(self, within_s: float, outside: Sequence[int] = ()) -> bool:
        """Whether something is queued that no person holds back and that may start this soon.

        Sources that are `outside` their hours for as long only start what does not touch them.
        """
        until, away = self._db.now() + within_s, to_json(sorted(outside))
        return self._db.value("startable", until=until, outside=away) is not None

    def startable_stages(
        self, within_s: float, outside: Sequence[int] = (), run_id: int | None = None
    ) -> list[tuple[int, str]]:
        """The same, by source and stage; or what a drain of this run could start."""
        until, away = self._db.now() + within_s, to_json(sorted(outside))
        found = self._db.json("startable_stages", until=until, outside=away, run_id=run_id)
        return [(source_id, stage) for source_id, stage in found]

    def has_suspects(self, run_id: int | None = None) -> bool:
        """Whether a job is queued under which two workers have died already; for drains, of their run."""
        return self._db.value("suspect_of", run_id=run_id) is not None

    def story(self, job_id: int) -> Story:
        """What is known of a job's past: from its rows, and as far back as the journal goes."""
        job = self.get(job_id)
        if job is None:
            raise UsageError(f"there is no job {job_id}", code="no_job", remedy=Remedy("jobs.list"))
        return story_of(self._db, job)

    def beat_stream(self, worker: str, job_id: int, attempt: int) -> bool:
        """This stream is alive now; False when the attempt no longer owns its job."""
        with self._db.writing() as now:
            beat = {"id": job_id, "attempt": attempt, "worker": worker, "now": now}
            return self._db.do("beat_stream_if_running", **beat) > 0

    def stream_alive_at(self, source_id: int) -> float | None:
        """When a stream of this source was last known to be alive; None if there never was one."""
        found = self._db.value("stream_alive_at", source_id=source_id)
        return None if found is None else float(found)

    def running_streams(self) -> int:
        """How many streams run now: they don't end by themselves, so nobody waits for them."""
        return int(self._db.value("running_streams"))
