"""Pages: what was fetched, from its snapshot; and one page tried, without writing anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.noun import Noun
from penstock.app.privacy import steps_of
from penstock.app.views.pages import SnapshotView, snapshot_view
from penstock.app.views.tried import TriedView, tried_view
from penstock.errors import Refused, UsageError
from penstock.http.browser.options import SCREENSHOT
from penstock.store.rows import SnapshotRow

if TYPE_CHECKING:
    from penstock.http.response import Response


class Pages(Noun):
    """The pages that the runs of a project have fetched."""

    def list(self, target: int | str, *, limit: int = 20) -> Sequence[SnapshotView]:
        """The pages that a job (its number) fetched, or that came from a URL; newest first."""
        if isinstance(target, str):
            return [snapshot_view(row) for row in self._store.snapshots.at(target, limit)]
        job = self._project.jobs.get(target)
        found = self._store.snapshots.of_job(job.id, limit)
        if not found:
            why = f": {job.error}" if job.error else ""
            raise Refused(
                f"nothing was fetched for job {job.id} ({job.state}{why})", code="nothing_fetched"
            )
        return [snapshot_view(row) for row in found]

    def screenshots(self, target: int | str, *, limit: int = 20) -> Sequence[SnapshotView]:
        """Pictures of what a browser showed for a job (its number), or of a URL; newest first."""
        if isinstance(target, str):
            found = self._store.snapshots.at(SCREENSHOT + target, limit)
        else:
            job = self._project.require_job(target)
            pages = self._store.snapshots.of_job(job.id, 1000)
            found = [page for page in pages if page.url.startswith(SCREENSHOT)][:limit]
        if not found:
            raise Refused(
                f"no screenshot is kept of {target}",
                "`screenshot: always` in the source keeps one of every page",
                code="no_screenshot",
            )
        return [snapshot_view(row) for row in found]

    def __call__(self, target: int | str) -> Sequence[SnapshotView]:
        """The same: `project.pages(target)` was a verb before it was a noun."""
        return self.list(target)

    def get(self, snapshot: int) -> SnapshotView:
        """One page by the number of its snapshot; refused if it is no longer kept."""
        row = self._store.snapshots.get(snapshot)
        if row is None:
            raise UsageError(f"there is no snapshot {snapshot}", code="no_snapshot")
        return snapshot_view(row)

    def read(self, page: SnapshotView, *, include_private: bool = False) -> Response:
        """A page with its body; that of a private source only with `include_private`."""
        is_included = include_private or self._project.includes_private
        if not is_included and self._is_private(page):
            raise Refused(
                "this page is of a private source",
                "its content is shown only where private sources are included",
                code="page_private",
            )
        # As it is stored: the page that was passed may be one that shows nothing of a private source.
        row = self._store.snapshots.get(page.id)
        return self._project.read_page(row or SnapshotRow(**msgspec.structs.asdict(page)))

    def _is_private(self, page: SnapshotView) -> bool:
        """Whether its source is private; a page whose run is gone may be, where there is such a source."""
        private = self._project.settings.private_sources
        if not private:
            return False
        found = self._store.runs.get(page.run_id)
        return found is None or found.source in private

    def try_(
        self,
        source: str,
        target: str | int,
        *,
        step: str | None = None,
        item: Any = None,
        offline: bool = False,
        timeouts: bool = True,
    ) -> TriedView:
        """Perform the steps of one page and what follows them, without writing anything.

        `target` is an address, or the number of a job. `item` is what the step is given: without it, the
        item of the newest job for this address. `offline` reads pages from their snapshots.
        """
        from penstock.app.refusals import refuse_fetch
        from penstock.app.run_performer import in_own_loop
        from penstock.engine.dry_run import try_page

        if not offline:
            key = self._project.source(source).key
            refuse_fetch(self._project, key, self._project.connection.onboardings.get(key))
        with steps_of(self._project, self._project.source_key(source)):
            tried = in_own_loop(
                lambda: try_page(
                    self._project,
                    source,
                    str(target),
                    stage=step,
                    item=item,
                    is_offline=offline,
                    has_timeouts=timeouts,
                )
            )
        return tried_view(tried)
