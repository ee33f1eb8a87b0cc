"""Jobs: cancel, retry or hold one of them."""

from __future__ import annotations

from penstock.app.noun import Noun, who
from penstock.app.refusals import refuse_opening
from penstock.app.views.jobs import JobView, job_view
from penstock.errors import Refused, Remedy


class Jobs(Noun):
    """The jobs of a project's runs."""

    def get(self, job: int) -> JobView:
        return job_view(self._project.require_job(job))

    def cancel(self, job: int, *, actor: str | None = None, reason: str = "") -> None:
        """End one job for good; the rest of its run goes on."""
        row = self._project.require_job(job)
        if row.unit == "run" and row.key == "root":
            raise Refused(
                f"job {job} is the first job of run {row.run_id}",
                f"cancel the run: penstock cancel {row.run_id}",
                code="first_job",
                remedy=Remedy("runs.cancel", row.run_id),
            )
        if not self._store.cancel_job(job, who(actor), reason):
            state = self._project.require_job(job).state
            raise Refused(f"job {job} is {state} already", code="job_ended")

    def retry(self, job: int, *, actor: str | None = None, reason: str = "") -> None:
        """Queue a quarantined or waiting job again, with fresh tries; a run that had ended opens again."""
        refuse_opening(self._project, self._project.require_job(job).run_id)
        if not self._store.retry_job(job, who(actor), reason):
            state = self._project.require_job(job).state
            raise Refused(
                f"job {job} is {state}; only a quarantined or waiting job can be retried",
                code="job_not_failed",
            )

    def hold(self, job: int, *, actor: str | None = None, reason: str = "") -> bool:
        """Set one queued or waiting job aside; False if it is held already."""
        row = self._project.require_job(job)
        if self._store.hold_job(job, who(actor), reason):
            return True
        if row.state != "held":
            raise Refused(
                f"job {job} is {row.state}; only a queued or waiting job can be held",
                code="job_not_waiting",
            )
        return False

    def unhold(self, job: int, *, actor: str | None = None, reason: str = "") -> bool:
        """Put it back to where it was; False if it was not held."""
        self._project.require_job(job)
        return self._store.unhold_job(job, who(actor), reason)
