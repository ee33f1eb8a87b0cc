"""Setting aside: what a budget has no room for is taken out of its queue, many jobs at a time."""

from __future__ import annotations

from penstock.jobs.job import JobState
from penstock.jobs.run import RunState
from penstock.journal.job_events import JobQuarantined
from penstock.store.advancing import advance_runs
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger

LIMIT = 1000


class SettingAside:
    """The verb for a stage of which a job was claimed, and found that a budget is used up."""

    _db: Database

    def set_aside(
        self, run_id: int, stage: str, reason: str, actor: str, limit: int = LIMIT
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
