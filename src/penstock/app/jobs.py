"""Jobs: list them, look at one, cancel, retry or hold it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, place_of, size_of
from penstock.app.refusals import refuse_opening
from penstock.app.views.jobs import (
    JobDetail,
    JobTimeline,
    JobView,
    job_detail,
    job_view,
    timeline_view,
)
from penstock.app.views.view import Page
from penstock.errors import Refused, Remedy, UsageError, nearest
from penstock.jobs.job import JobState
from penstock.store.jobs import JobFilter


class Jobs(Noun):
    """The jobs of a project's runs."""

    def list(
        self,
        *,
        run: int | None = None,
        source: str | None = None,
        stage: str | None = None,
        states: Sequence[str] = (),
        cursor: str | None = None,
        limit: int = USUAL,
    ) -> Page[JobView]:
        """Jobs, oldest first; only those of a run, a source, a stage, or in these states."""
        if run is not None:
            self._project.require_run(run)
        size = size_of(limit)
        wanted = JobFilter(
            run_id=run,
            source=self._project.source_key(source),
            stage=stage,
            states=tuple(_state(name) for name in states),
            limit=size + 1,
            after_id=place_of(cursor, int) or 0,
        )
        return page_of(self._store.jobs.find(wanted), size, job_view, lambda row: row.id)

    def each(
        self,
        *,
        run: int | None = None,
        source: str | None = None,
        stage: str | None = None,
        states: Sequence[str] = (),
        limit: int | None = None,
    ) -> Iterator[JobView]:
        """Iterate over all of them, or the first `limit`, page by page."""

        def read(cursor: str | None, size: int) -> Page[JobView]:
            return self.list(
                run=run, source=source, stage=stage, states=states, cursor=cursor, limit=size
            )

        return each_item(read, limit)

    def get(self, job: int) -> JobView:
        """One job."""
        return job_view(self._project.require_job(job))

    def detail(self, job: int) -> JobDetail:
        """One job in full: its item, its traceback, and its limits and retries."""
        from penstock.app.job_terms import terms_of

        row = self._project.require_job(job)
        return job_detail(row, self._store.jobs.detail(job), terms_of(self._project, row))

    def timeline(self, job: int) -> JobTimeline:
        """The history of one job: its attempts while the journal has them, its pages, children, records."""
        return timeline_view(self._store.jobs.story(job))

    def children(self, job: int, limit: int = USUAL) -> Sequence[JobView]:
        """The first jobs that a job has enqueued."""
        row = self._project.require_job(job)
        return [job_view(each) for each in self._store.jobs.children(row, size_of(limit))]

    def cancel(self, job: int, *, actor: str | None = None, reason: str = "") -> None:
        """Cancel one job for good; the rest of its run continues."""
        row = self._project.require_job(job)
        if row.unit == "run" and row.key == "root":
            raise Refused(
                f"job {job} is the first job of run {row.run_id}",
                f"cancel the run: penstock cancel {row.run_id}",
                code="first_job",
                remedy=Remedy("runs.cancel", row.run_id),
            )
        if not self._store.jobs.cancel(job, who(actor), reason):
            state = self._project.require_job(job).state
            raise Refused(f"job {job} is {state} already", code="job_ended")

    def retry(self, job: int, *, actor: str | None = None, reason: str = "") -> None:
        """Queue a quarantined or waiting job again, with all its tries; an ended run opens again."""
        refuse_opening(self._project, self._project.require_job(job).run_id)
        if not self._store.jobs.retry(job, who(actor), reason):
            state = self._project.require_job(job).state
            raise Refused(
                f"job {job} is {state}; only a quarantined or waiting job can be retried",
                code="job_not_failed",
            )

    def hold(self, job: int, *, actor: str | None = None, reason: str = "") -> bool:
        """Hold a queued or waiting job until `unhold`; False if it is already held."""
        row = self._project.require_job(job)
        if self._store.jobs.hold(job, who(actor), reason):
            return True
        if row.state != "held":
            raise Refused(
                f"job {job} is {row.state}; only a queued or waiting job can be held",
                code="job_not_waiting",
            )
        return False

    def unhold(self, job: int, *, actor: str | None = None, reason: str = "") -> bool:
        """Return a held job to its former state; False if it is not held."""
        self._project.require_job(job)
        return self._store.jobs.unhold(job, who(actor), reason)


def _state(name: str) -> JobState:
    try:
        return JobState(name)
    except ValueError:
        known = nearest(name, list(JobState))
        raise UsageError(f"there is no state {name!r}", known, code="no_state") from None
