"""Workers: one lease each; a worker that dies is buried and its jobs run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.errors import Refused, Remedy
from penstock.gates.capacity import DrainScope
from penstock.gates.loaded import Loaded, WorkerCode
from penstock.jobs.failures import POISON
from penstock.jobs.job import JobState
from penstock.jobs.retry import MAX_DEATHS
from penstock.journal.job_events import JobQuarantined, JobReleased
from penstock.journal.service_events import WorkerReaped, WorkerStarted, WorkerStopped
from penstock.store.budgets import forfeit
from penstock.store.database import to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.rows import Admits, WorkerRow
from penstock.store.turn.run_progress import advance_runs

LEASE_S = 15.0


def last_beat(lease_expires_at: float) -> float:
    """When a worker with this lease was last known to be alive."""
    return lease_expires_at - LEASE_S


class Workers(Noun):
    """The verbs of liveness."""

    def register(
        self,
        worker: str,
        host: str,
        pid: int,
        version: str,
        slots: int = 0,
        admits: Admits = "all",
        scope: DrainScope | None = None,
    ) -> None:
        """Begin a worker's lease; nothing can be claimed without one."""
        about = {"host": host, "pid": pid, "version": version, "slots": slots, "admits": admits}
        about |= {"scope": "" if scope is None else scope.text}
        about |= {"schema": self._db.schema, "lease_s": LEASE_S}
        with self._db.writing() as now:
            if not self._db.do("register_if_welcome", id=worker, now=now, **about):
                raise self._unwelcome()
            ledger = Ledger(self._db, now)
            ledger.journal(WorkerStarted(), actor=worker)
            ledger.write()

    def _unwelcome(self) -> Refused:
        origin = self._db.value("unfinished_copy")
        if origin is None:
            return Refused(
                "the database's schema is newer than this Penstock supports",
                "upgrade Penstock",
            )
        return Refused(
            f"the database holds an unfinished copy of {origin}: no worker can start",
            "wait for it, or start the same copy again: it continues where it stopped",
            code="copy_unfinished",
            remedy=Remedy("store.copy"),
        )

    def beat(self, worker: str) -> bool:
        """Renew a worker's lease; False when it was buried and must stop."""
        with self._db.writing() as now:
            return self._db.do("beat_if_registered", id=worker, now=now, lease_s=LEASE_S) > 0

    def expired(self) -> list[str]:
        return [row[0] for row in self._db.rows("expired", now=self._db.now())]

    def bury(self, worker: str, reason: str, died_at: float | None = None) -> list[int]:
        """Return a dead worker's jobs to their lanes, counting the attempt; answers with their ids.

        Goes by the worker's name alone: one that is alive but was buried loses its jobs too, and learns
        of it when its next turn answers that it is. A job under which three workers died is quarantined.
        `died_at` is when it was last known to be alive, if nobody saw it die just now.
        """
        with self._db.writing() as now:
            if not self._db.do("unregister", id=worker):
                return []
            return self._bury(worker, now, reason, died_at)

    def bury_if_expired(self, worker: str, reason: str) -> list[int] | None:
        """Bury a worker whose lease has run out; None if it was renewed or buried meanwhile."""
        with self._db.writing() as now:
            expires_at = self._db.value("lease_of", id=worker)
            if not self._db.do("unregister_if_expired", id=worker, now=now):
                return None
            return self._bury(worker, now, reason, last_beat(expires_at))

    def _bury(
        self, worker: str, now: float, reason: str, died_at: float | None = None
    ) -> list[int]:
        jobs = self._db.rows("bury_jobs", id=worker, now=now, max_deaths=MAX_DEATHS)
        if jobs and died_at is not None:
            pairs = sorted((row[0], row[4]) for row in jobs)
            self._db.do("note_interruptions", jobs=to_json(pairs), since=min(died_at, now))
        return self._take_back(jobs, WorkerReaped(reason), worker, now)

    def sign_off(self, worker: str, reason: str = "drained") -> list[int]:
        """End a worker that stopped by itself: what it did not finish is released, no attempt is spent."""
        with self._db.writing() as now:
            if not self._db.do("unregister", id=worker):
                return []
            jobs = self._db.rows("release_jobs", id=worker, now=now)
            return self._take_back(jobs, WorkerStopped(reason), worker, now)

    def _take_back(
        self, jobs: Sequence[Any], event: WorkerReaped | WorkerStopped, worker: str, now: float
    ) -> list[int]:
        ledger = Ledger(self._db, now)
        forfeit(self._db, ledger, worker)
        ledger.journal(event, actor=worker)
        poison = []
        for job_id, run_id, source_id, stage, attempt, state in jobs:
            ledger.moved(run_id, stage, JobState.RUNNING, JobState(state))
            is_poison = state == JobState.QUARANTINED
            about = (source_id, run_id, job_id, attempt, worker)
            end = JobQuarantined if is_poison else JobReleased
            ledger.journal(end(event.reason), *about, worker=worker)
            if is_poison:
                error = f"its worker died {MAX_DEATHS} times while running it ({event.reason})"
                poison.append((job_id, attempt, POISON, error, "", "", 1, 0))
        if poison:
            self._db.do("note_failures", now=now, failures=to_json(poison))
        ledger.write_counts()
        advance_runs(self._db, ledger, now)
        ledger.write()
        return [row[0] for row in jobs]

    def all(self) -> list[WorkerRow]:
        return self._db.decoded("workers", list[WorkerRow])

    def still_owned(self, worker: str, job_ids: Sequence[int]) -> set[int]:
        """Those of these jobs that are still this worker's."""
        return set(self._db.json("owned_jobs", ids=to_json(job_ids), worker=worker))

    def announce(self, worker: str, loaded: Loaded, parent_pid: int) -> None:
        """Say what a worker has loaded: what no worker that is alive knows waits until one does."""
        with self._db.writing():
            self._db.do("add_loaded", hash=loaded.hash, code=loaded.text)
            about = {"hash": loaded.hash, "parent_pid": parent_pid}
            self._db.do("announce_if_registered", id=worker, **about)
            self._db.do("drop_loaded")

    def codes(self) -> list[WorkerCode]:
        """The workers that are alive and what each has loaded."""
        return self._db.decoded("worker_codes", list[WorkerCode], now=self._db.now())

    def halted(self, worker: str, job_ids: Sequence[int]) -> dict[int, str]:
        """Those of this worker's running jobs whose run, source or project is paused or held, and by what."""
        return dict(self._db.json("halted_jobs", ids=to_json(job_ids), worker=worker))

    def jobs_of(self, worker: str) -> set[tuple[int, int]]:
        """The (job, attempt) pairs a worker still owns."""
        return {(job_id, attempt) for job_id, attempt in self._db.json("jobs_of", id=worker)}
