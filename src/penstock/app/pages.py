"""Pages: what was fetched, from its snapshot. Nothing is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.app.noun import Noun
from penstock.errors import Refused

if TYPE_CHECKING:
    from penstock.http.response import Response
    from penstock.store.rows import SnapshotRow


class Pages(Noun):
    """The pages that the runs of a project have fetched."""

    def list(self, target: int | str, *, limit: int = 20) -> Sequence[SnapshotRow]:
        """The pages that a job (its number) fetched, or that came from a URL; newest first."""
        if isinstance(target, str):
            return self._store.pages_at(target, limit)
        job = self._project.require_job(target)
        found = self._store.pages_of(job.id, limit)
        if not found:
            why = f": {job.error}" if job.error else ""
            raise Refused(
                f"nothing was fetched for job {job.id} ({job.state}{why})", code="nothing_fetched"
            )
        return found

    def __call__(self, target: int | str) -> Sequence[SnapshotRow]:
        """The same: `project.pages(target)` was a verb before it was a noun."""
        return self.list(target)

    def read(self, page: SnapshotRow) -> Response:
        """A page with its body."""
        return self._project.read_page(page)
