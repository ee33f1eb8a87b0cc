"""Backfills: plan and start runs that fetch a range of a source's history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from penstock.app.backfill_estimate import budget_lines, estimate
from penstock.app.noun import Noun, who
from penstock.app.refusals import Stopped
from penstock.app.unfinished import unfinished_backfill
from penstock.app.views.backfills import BackfillPlan, GapView
from penstock.app.views.runs import Started, run_view
from penstock.errors import nearest
from penstock.jobs.windows import windows_of
from penstock.project.backfills import missing as missing_of

if TYPE_CHECKING:
    from penstock.jobs.run import RunOptions
    from penstock.project.backfills import Missing, Moment
    from penstock.settings import SourceSettings
    from penstock.store.rows import RunRow
    from penstock.store.store import Store

# So many of a source's newest runs are measured.
RECENT_RUNS = 50


class Backfills(Noun):
    """The backfills of sources: each is a run of its own, of units of one window per partition."""

    def plan(
        self,
        source: str,
        start: Moment,
        end: Moment,
        partitions: Sequence[str] = (),
        *,
        missing: bool = False,
        window_s: float | None = None,
    ) -> BackfillPlan:
        """What a backfill would fetch, and an estimate of what that takes. It starts nothing.

        `start` and `end` are days or times (`"2024-01-31"`, a date, seconds since the epoch); a day that it
        ends with belongs to it. Without `partitions` it is all of the source's, without `window_s` its
        window. `missing` plans only what is not recorded as ingested.
        """
        options = self._options(source, start, end, partitions, missing, window_s)
        found = self._project.source(source)
        windows = windows_of(options)
        runs, gaps = self._known(found, options)
        units = windows.expected() if gaps is None else gaps.units
        told = estimate(found, units, runs, self._project.clock.now())
        return BackfillPlan(
            source=found.key,
            start_at=windows.start_at,
            end_at=windows.end_at,
            window_s=windows.window_s,
            partitions=list(options.partitions),
            expected=windows.expected(),
            units=units,
            calls=round(told.calls),
            seconds=round(told.seconds, 1),
            basis=told.basis,
            budget=budget_lines(found, told),
            missing=_gap_views(gaps),
            options=options,
        )

    def start(
        self,
        source: str,
        start: Moment,
        end: Moment,
        partitions: Sequence[str] = (),
        *,
        missing: bool = False,
        window_s: float | None = None,
        for_run: int | None = None,
        new: bool = False,
        awaited: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> Started:
        """Queue a backfill. If the same backfill has not ended, it goes on instead, unless `new`.

        Over what is ingested already, all or in part, the run is a reconciliation, and its options say of
        which run. `for_run` is the run that this one is for. `awaited`: you wait for its end, so a paused or
        held source is refused; a degraded source is refused in any case. `dry_run` only refuses what would be
        refused.
        """
        options = self._options(source, start, end, partitions, missing, window_s)
        key = self._project.source(source).key
        known = None if new else unfinished_backfill(self._project, key, options)
        if awaited:
            Stopped(self._project).refuse(key, known)
        if known is not None:
            return self._view(key, known, is_new=False)
        self._project.refuse_degraded(self._project.source(source))
        if dry_run:
            return Started(source=key, run=None, is_new=True)
        row = self._project.start_backfill(key, options, for_run, who(actor), reason)
        return self._view(key, row, is_new=True)

    def unknown_partitions(self, source: str, partitions: Sequence[str]) -> Mapping[str, str]:
        """Those of these partitions that penstock.yaml does not name, each with the nearest one that it does.

        One may be fetched before it is configured; it may also be mistyped.
        """
        settings = self._project.source(source).backfill
        known = settings.partitions if settings else ()
        if known == ("default",):
            return {}
        return {name: nearest(name, known) for name in partitions if name not in known}

    def _view(self, key: str, row: RunRow, is_new: bool) -> Started:
        return Started(source=key, run=run_view(row, self._store.now()), is_new=is_new)

    def _options(
        self,
        source: str,
        start: Moment,
        end: Moment,
        partitions: Sequence[str],
        missing: bool,
        window_s: float | None,
    ) -> RunOptions:
        return self._project.backfill_options(
            source, start, end, partitions, missing=missing, window_s=window_s
        )

    def _known(
        self, source: SourceSettings, options: RunOptions
    ) -> tuple[Sequence[RunRow], Missing | None]:
        """The runs to measure, and what is missing if only that is asked for."""
        store = self._existing_store()
        ids = {} if store is None else store.sources.ids()
        if store is None or source.key not in ids:
            return [], None
        runs = store.runs.newest(source.key, limit=RECENT_RUNS)
        if not options.is_missing_only:
            return runs, None
        return runs, missing_of(store, ids[source.key], windows_of(options))

    def _existing_store(self) -> Store | None:
        """The project's store, unless it would have to be made, or brought up to date, to be read."""
        settings = self._project.settings
        if not settings.is_on_postgres and not settings.store_file.exists():
            return None
        with closing(self._project.open_schema()) as schema:
            if schema.plan().state.number < schema.schema:
                return None
        return self._store


def _gap_views(gaps: Missing | None) -> list[GapView]:
    return [
        GapView(partition=gap.partition, start_at=gap.start_at, end_at=gap.end_at)
        for gap in (gaps.stretches if gaps else ())
    ]
