"""The review: attempts whose job was taken away or paused meanwhile, and hosts that others closed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.engine.worker.attempts import Attempts
from penstock.engine.worker.calls import Calls
from penstock.engine.worker.ends import Ends
from penstock.engine.worker.hosts import HostWatch
from penstock.engine.worker.running_jobs import RunningJobs
from penstock.http.fetch import Fetcher
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Settlement
from penstock.store.store import Store

# How long a stream that was paused may take to come to a commit, a yield or a fetch.
STREAM_HALT_S = 3.0


@dataclass(eq=False, slots=True, kw_only=True)
class Review:
    worker: str
    store: Store
    calls: Calls
    running: RunningJobs
    attempts: Attempts
    ends: Ends
    hosts: HostWatch
    fetcher: Fetcher
    # Since when running jobs are asked to stop because something was paused.
    _halted_at: dict[int, float] = field(default_factory=dict, init=False)

    async def look(self, now: float) -> None:
        ids = [job_id for job_id, _ in self.running]
        owned = await self.calls(lambda: self.store.workers.still_owned(self.worker, ids))
        for job_id in set(ids) - owned:
            self.attempts.cancel(job_id, "this attempt no longer owns the job")
        await self._look_for_pauses(now)
        self.close_hosts(await self.calls(self.store.hosts.closed))
        self.hosts.learn(await self.calls(self.store.hosts.watched))

    async def release_unheard(self) -> None:
        """A turn that failed may have been written all the same: release what it claimed unheard."""
        owned = await self.calls(lambda: self.store.workers.jobs_of(self.worker))
        known = set(self.running) | self.attempts.ahead.attempts | self.ends.attempts
        for job_id, attempt in sorted(owned - known):
            reason = "claimed in a turn that was not answered"
            self.ends.add(Settlement(job_id, attempt, JobState.QUEUED, reason=reason))

    def close_hosts(self, closed_hosts: Mapping[str, float]) -> None:
        for host, closed_until in closed_hosts.items():
            self.fetcher.close_host(host, closed_until)

    async def _look_for_pauses(self, now: float) -> None:
        """Stop long attempts whose run, source or project was paused or held meanwhile.

        They stop at their next pause point. A stream may never come to one, so it is stopped anyway.
        """
        stages = {job_id: running.work.stage for (job_id, _), running in self.running.items()}
        ids = [job_id for job_id, stage in stages.items() if stage.unit == "run"]
        halted = (
            await self.calls(lambda: self.store.workers.halted(self.worker, ids)) if ids else {}
        )
        self.attempts.halt(halted)
        self._halted_at = {job_id: self._halted_at.get(job_id, now) for job_id in halted}
        for job_id, since in self._halted_at.items():
            if job_id in stages and stages[job_id].is_stream and now - since >= STREAM_HALT_S:
                self.attempts.cancel(job_id, halted[job_id])
