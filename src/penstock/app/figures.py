"""Figures: what the journal and the counters come to, by hour, day, label and run. Nothing here scans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.app.noun import Noun
from penstock.app.paging import USUAL, cursor_of, each_item, place_of, size_of
from penstock.app.views.figures import (
    BreakdownView,
    RunFiguresView,
    SeriesView,
    mean_of,
    run_figures_view,
)
from penstock.app.views.view import Page
from penstock.errors import UsageError
from penstock.jobs.run import RunKind
from penstock.metrics.buckets import quantile
from penstock.metrics.measures import MEASURES, STEPS, SUMS, Measure

DAY_S = 86_400.0
# By default, so many hours or days are shown; and never more points than this.
USUAL_STEPS = {"hour": 48, "day": 30}
MOST_POINTS = 20_000


class Figures(Noun):
    """The figures of a project over time."""

    def series(
        self,
        measure: str,
        source: str | None = None,
        *,
        label: str | None = None,
        since: float | None = None,
        until: float | None = None,
        step: str = "hour",
    ) -> SeriesView:
        """A measure by hour or day, of one source or of all, with one label or with all of them.

        Hours and days without anything have the value 0; those before the first known one are left out.
        Hours are kept for 35 days, days for two years.
        """
        known, key = _measure(measure), self._project.source_key(source)
        since, until, step_s = self._stretch(since, until, step)
        source_id = self._source_id(key)
        found = self._store.rollups.series(known.name, source_id, since, until, step, label)
        return SeriesView(
            measure=known.name,
            source=key,
            label=label,
            step=step,
            unit=known.unit,
            since=since,
            until=until,
            as_of=self._store.rollups.folded_at(),
            points=_filled(found, until, step_s),
        )

    def breakdown(
        self,
        measure: str,
        source: str | None = None,
        *,
        since: float | None = None,
        until: float | None = None,
        step: str = "hour",
    ) -> BreakdownView:
        """A measure by label over a stretch of time, and for histograms its median, 95th percentile and mean.

        With `step="day"` it goes back further than hours are kept, in whole days.
        """
        known, key = _measure(measure), self._project.source_key(source)
        since, until, _ = self._stretch(since, until, step)
        where = (self._source_id(key), since, until, step)
        labels = self._store.rollups.by_label(known.name, *where)
        is_histogram = known.kind == "histogram"
        sums = self._store.rollups.by_label(SUMS[known.name], *where) if is_histogram else {}
        histograms = {known.name: labels, SUMS.get(known.name, ""): sums}
        return BreakdownView(
            measure=known.name,
            source=key,
            unit=known.unit,
            since=since,
            until=until,
            total=sum(labels.values()),
            labels=labels,
            p50=quantile(known.name, labels, 0.5) if is_histogram else None,
            p95=quantile(known.name, labels, 0.95) if is_histogram else None,
            mean=mean_of(known.name, histograms) if is_histogram else None,
        )

    def by_source(
        self,
        measure: str,
        *,
        label: str | None = None,
        since: float | None = None,
        until: float | None = None,
        step: str = "day",
    ) -> dict[str, float]:
        """A measure by source over a stretch of time."""
        known = _measure(measure)
        since, until, _ = self._stretch(since, until, step)
        return self._store.rollups.by_source(known.name, since, until, step, label)

    def totals(self, measure: str) -> dict[str, dict[str, float]]:
        """All that was ever counted of a measure, by source and label; those of all sources are under ""."""
        known = _measure(measure)
        found: dict[str, dict[str, float]] = {}
        for source, _, label, value in self._store.rollups.totals([known.stored]):
            if not known.labels or label in known.labels:
                found.setdefault(source or "", {})[label] = value
        return found

    def runs(
        self,
        source: str | None = None,
        *,
        kinds: Sequence[str] | None = None,
        since: float | None = None,
        cursor: str | None = None,
        limit: int = USUAL,
    ) -> Page[RunFiguresView]:
        """The figures of ended runs, the newest first; of these kinds, that ended since then.

        Kinds are full, incremental, backfill, replay, probe and stream; without any, all but replays and
        probes.
        """
        key, size = self._project.source_key(source), size_of(limit)
        before_id = place_of(cursor, int)
        rows = self._store.runs.newest(key, limit=size + 1, before_id=before_id)
        since, wanted = since or 0.0, _kinds(kinds)
        ended = [row for row in rows[:size] if (row.finished_at or -1.0) >= since]
        shown = [row for row in ended if row.kind in wanted]
        # Behind a page whose runs are all too old there is no younger one.
        has_more = len(rows) > size and (bool(ended) or rows[-1].created_at >= since)
        following = cursor_of(rows[size - 1].id) if has_more else None
        histograms = self._store.rollups.of_runs([row.id for row in shown])
        return Page([run_figures_view(row, histograms.get(row.id, {})) for row in shown], following)

    def each_run(
        self,
        source: str | None = None,
        *,
        kinds: Sequence[str] | None = None,
        since: float | None = None,
        limit: int | None = None,
    ) -> Iterator[RunFiguresView]:
        """As `runs`, all of them, read in pages as you go."""

        def read(cursor: str | None, size: int) -> Page[RunFiguresView]:
            return self.runs(source, kinds=kinds, since=since, cursor=cursor, limit=size)

        return each_item(read, limit)

    def _source_id(self, key: str | None) -> int | None:
        return None if key is None else self._store.sources.ensure([key])[key]

    def _stretch(
        self, since: float | None, until: float | None, step: str
    ) -> tuple[float, float, int]:
        if step not in STEPS:
            raise UsageError(f"a step can't be {step!r}", "it is hour or day", code="bad_step")
        step_s = STEPS[step]
        until = self._store.now() if until is None else until
        since = until - USUAL_STEPS[step] * step_s if since is None else since
        return max(since, until - MOST_POINTS * step_s), until, step_s


def _measure(name: str) -> Measure:
    known = MEASURES.get(name)
    if known is None:
        names = ", ".join(MEASURES)
        raise UsageError(f"there is no measure {name!r}", f"there is {names}", code="no_measure")
    return known


def _kinds(kinds: Sequence[str] | None) -> frozenset[str]:
    if kinds is None:
        return frozenset(RunKind) - {RunKind.REPLAY, RunKind.PROBE}
    return frozenset(kinds)


def _filled(
    points: Sequence[tuple[float, float]], until: float, step_s: int
) -> list[tuple[float, float]]:
    """The points with those in between, and after the last one, that have nothing."""
    if not points:
        return []
    values = dict(points)
    first = points[0][0]
    steps = max(len(points), int((until - first) // step_s) + 1)
    moments = (first + number * step_s for number in range(steps))
    return [(at, values.get(at, 0.0)) for at in moments if at < until or at in values]
