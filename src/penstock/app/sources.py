"""Sources: list them, pause and resume them, hold them for maintenance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.app.next_runs import next_run
from penstock.app.noun import who
from penstock.app.paging import USUAL, page_within
from penstock.app.source_lifecycle import SourceLifecycle
from penstock.app.source_list import SourceList
from penstock.app.views.sources import (
    HoldView,
    NextRunView,
    SourceDetail,
    SourceView,
    hold_view,
    source_view,
)
from penstock.app.views.view import Page
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.views.connectors import ProbeView
    from penstock.store.rows import SourceRow


class Sources(SourceLifecycle):
    """The sources of a project."""

    def list(self, *, cursor: str | None = None, limit: int = USUAL) -> Page[SourceDetail]:
        """The sources of penstock.yaml, and former ones that still have history, by name."""
        found = SourceList(self._project)
        return page_within(found.rows, cursor, limit, found.view, lambda row: row.key, str)

    def each(self) -> Iterator[SourceDetail]:
        """Iterate over all of them, page by page."""
        found = SourceList(self._project)
        return map(found.view, found.rows)

    def get(self, source: str) -> SourceDetail:
        """One source."""
        row = self._row(source)
        return SourceList(self._project, [row]).view(row)

    def state(self, source: str) -> SourceView:
        """What has become of a source, without what penstock.yaml says of it."""
        return source_view(self._row(source))

    def next_run(self, source: str) -> NextRunView | None:
        """When a source is due by its schedules; None if it is not."""
        row = self._row(source)
        if row.next_run_at is None:
            return None
        settings = self._project.settings.sources.get(row.key)
        return next_run(settings, row.key, row.next_run_at, self._store.now())

    def probe(self, source: str, records: int = 3, *, include_private: bool = False) -> ProbeView:
        """Look at the place of a source now, and at the first records that a run would save.

        Nothing is written, and no run is started. A failure is an answer (`verdict`), not an error. Of a
        private source only the facts are shown without `include_private`.
        """
        from penstock.app.source_probe import probe

        self._refuse_fetch(source)
        return probe(self._project, source, records, include_private=include_private)

    def holds(self) -> Sequence[HoldView]:
        """The active holds: of the whole project, and of single sources."""
        return [hold_view(row) for row in self._store.sources.holds()]

    def pause(self, source: str, *, actor: str | None = None, reason: str = "") -> bool:
        """Pause a source: no more of its jobs start until `resume`. False if it is already paused.

        Running attempts finish. Its schedule keeps creating runs, which wait.
        """
        return self._store.sources.pause(self._id_of(source), who(actor), reason)

    def resume(self, source: str, *, actor: str | None = None, reason: str = "") -> bool:
        """Resume a paused source, or mark a degraded one healthy. False if it is neither."""
        source_id, store = self._id_of(source), self._store
        is_recovered = store.sources.recover(source_id, who(actor), reason)
        if is_recovered:
            store.runs.start_recovered(who(actor))
        return store.sources.resume(source_id, who(actor), reason) or is_recovered

    def hold(
        self, source: str | None = None, *, actor: str | None = None, reason: str = ""
    ) -> bool:
        """Maintenance: start no jobs of a source, or of the whole project. False if it is already held."""
        return self._store.sources.hold(self._scope(source), who(actor), reason)

    def unhold(
        self, source: str | None = None, *, actor: str | None = None, reason: str = ""
    ) -> bool:
        """End maintenance. False if it is not held."""
        return self._store.sources.unhold(self._scope(source), who(actor), reason)

    def _row(self, source: str) -> SourceRow:
        key = self._project.source_key(source)
        row = None if key is None else self._store.sources.get(key)
        if row is None:
            raise UsageError(f"there is no source {source!r}", code="no_source")
        return row

    def _id_of(self, source: str) -> int:
        return self._project.source_ids[self._here(source)]

    def _here(self, source: str) -> str:
        """The key of a source that this cell has: an act on one of another cell would do nothing."""
        key = self._project.source(source).key
        self._project.refuse_elsewhere(key, self._store.onboardings.get(key))
        return key

    def _scope(self, source: str | None) -> str:
        """The scope of a hold: '' for everything, else a source's key."""
        if source is None:
            return ""
        _ = self._project.source_ids  # a source that is new in the file becomes known to the store
        return self._here(source)
