"""Rejects: items that pipelines rejected; list them, and redrive them after a fix."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace

from msgspec import structs

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, place_of, size_of
from penstock.app.views.rejects import RedriveView, RejectFilter, RejectView, reject_view
from penstock.app.views.view import Page
from penstock.errors import Refused, Remedy, UsageError
from penstock.jobs.redrive import redrive_plan
from penstock.jobs.windows import moment
from penstock.pipeline.version import version_of
from penstock.store import reject_rows

ALL = RejectFilter()


class Rejects(Noun):
    """Items that pipelines reject_rows."""

    def list(
        self, wanted: RejectFilter = ALL, *, cursor: str | None = None, limit: int = USUAL
    ) -> Page[RejectView]:
        """Rejects, newest first."""
        size = size_of(limit)
        rows = self._store.rejects.newest(self._checked(wanted), size + 1, place_of(cursor, int))
        return page_of(rows, size, reject_view, lambda row: row.id)

    def each(self, wanted: RejectFilter = ALL, *, limit: int | None = None) -> Iterator[RejectView]:
        """Iterate over all of them, or the newest `limit`, page by page."""
        return each_item(lambda cursor, size: self.list(wanted, cursor=cursor, limit=size), limit)

    def count(self, wanted: RejectFilter = ALL) -> int:
        """How many there are."""
        return self._store.rejects.count(self._checked(wanted))

    def get(self, reject: int) -> RejectView:
        """One reject, with its item."""
        row = self._project.require_reject(reject)
        return reject_view(row, self._store.rejects.item(row.id))

    def redrive(
        self,
        wanted: RejectFilter,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> RedriveView:
        """Process rejected items of one source again, with the current pipeline, in a new run.

        The source is the filter's own, or that of its run or its rejects. An item that was rejected several
        times is processed once, in its latest version. With `dry_run`, only counts the rejects.
        """
        source = self._source_of(wanted)
        found = self._checked(structs.replace(wanted, source=source, open_only=True))
        rejects = self._store.rejects.count(found)
        if not rejects:
            raise Refused(
                "there are no such rejects that were not redriven yet",
                "what a replay rejects counts when it is committed",
                code="nothing_to_redrive",
                remedy=Remedy("replays.commit"),
            )
        if dry_run:
            return RedriveView(run_id=None, rejects=rejects, items=None, source=source)
        done = self._start(source, found, who(actor), reason)
        return RedriveView(
            run_id=done.run_id, rejects=done.rejects, items=done.items, source=source
        )

    def _start(
        self, name: str, wanted: reject_rows.RejectFilter, actor: str, reason: str
    ) -> reject_rows.Redriven:
        """Start the run that redrives these rejects of a source."""
        source = self._project.source(name)
        graph, source_id = self._project.graph(source), self._project.source_ids[source.key]
        wanted = replace(wanted, source_id=source_id, open_only=True)
        rejecting = set(self._store.rejects.stages(wanted))
        plan = redrive_plan(graph.plan(source.priority), rejecting)
        redriven = plan.stages and self._store.rejects.redrive(
            source_id,
            plan,
            version_of(graph, source),
            wanted,
            key=f"redrive:{uuid.uuid4().hex}",
            actor=actor,
            reason=reason,
        )
        if not redriven:
            known = ", ".join(stage.name for stage in graph.stages)
            by = f"; it was rejected by {', '.join(sorted(rejecting))}" if rejecting else ""
            raise Refused(
                f"nothing to redrive: {source.key} has no rejects from a stage of its current pipeline",
                f"its pipeline has {known}{by}",
                code="no_such_stage",
            )
        return redriven

    def _source_of(self, wanted: RejectFilter) -> str:
        """The source that is meant: by its name, or by the run or the rejects that were named."""
        name = wanted.source
        if name is None and wanted.run_id is not None:
            name = self._project.require_run(wanted.run_id).source
        elif name is None and wanted.ids:
            rows = [self._project.require_reject(each) for each in wanted.ids]
            name, *others = sorted({row.source for row in rows})
            if others:
                told = ", ".join((name, *others))
                raise UsageError(
                    f"these rejects belong to several sources: {told}", code="several_sources"
                )
        if name is None:
            raise UsageError(
                "redrive what? A source, a run or rejects",
                code="no_filter",
                remedy=Remedy("rejects.list"),
            )
        return self._project.source(name).key

    def _checked(self, wanted: RejectFilter) -> reject_rows.RejectFilter:
        """What is meant, as the store has it; refuses what does not exist."""
        if wanted.run_id is not None:
            self._project.require_run(wanted.run_id)
        key = self._project.source_key(wanted.source)
        return reject_rows.RejectFilter(
            source_id=None if key is None else self._store.sources.ensure([key])[key],
            run_id=wanted.run_id,
            code=wanted.code,
            since=None if wanted.since is None else moment(wanted.since, "UTC"),
            ids=wanted.ids or None,
            open_only=wanted.open_only,
        )
