"""Figures as front ends see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Time, View
from penstock.metrics.buckets import quantile
from penstock.metrics.measures import SUMS

if TYPE_CHECKING:
    from penstock.store.rows import RunRow

Histograms = Mapping[str, Mapping[str, float]]


class SeriesView(View, frozen=True, kw_only=True):
    """A measure over time. `points` are [seconds since the epoch, value]: one for each hour or day.

    Points start with the first one that is known. `source` is null for all sources together. `as_of` is when
    the journal was summed last.
    """

    measure: str
    source: str | None
    label: str | None
    step: str
    unit: str
    since: Time
    until: Time
    as_of: Time
    points: list[tuple[float, float]]


class BreakdownView(View, frozen=True, kw_only=True):
    """A measure by label over a stretch of time. The labels of a histogram are the bounds of its buckets.

    `p50`, `p95` and `mean` are those of a histogram, and null for other measures.
    """

    measure: str
    source: str | None
    unit: str
    since: Time
    until: Time
    total: float
    labels: dict[str, float]
    p50: float | None
    p95: float | None
    mean: float | None


class RunFiguresView(View, frozen=True, kw_only=True):
    """The figures of one ended run. `took_s` is the time from its first job to its end.

    `discovered` are the pages and candidates it found, `failed` its jobs that are in quarantine. `quality` is
    the mean score of what it saved.
    """

    id: int = msgspec.field(name="run")
    source: str
    kind: str
    outcome: str
    started_at: Time | None
    finished_at: Time
    took_s: float | None
    discovered: int
    jobs: int
    failed: int
    new: int
    changed: int
    unchanged: int
    rejected: int
    duplicates: int
    retried: int
    throttled: int
    fetches: int
    bytes: int
    fetch_p50_s: float | None
    fetch_p95_s: float | None
    attempt_p50_s: float | None
    attempt_p95_s: float | None
    quality: float | None


def run_figures_view(row: RunRow, histograms: Histograms) -> RunFiguresView:
    fetches, attempts = histograms.get("fetch_seconds", {}), histograms.get("attempt_seconds", {})
    ended_at = row.finished_at or 0.0
    return RunFiguresView(
        id=row.id,
        source=row.source,
        kind=row.kind,
        outcome=row.state,
        started_at=row.started_at,
        finished_at=ended_at,
        took_s=None if row.started_at is None else max(0.0, ended_at - row.started_at),
        discovered=row.pages_added + row.candidates_added,
        jobs=row.succeeded + row.skipped + row.quarantined + row.cancelled,
        failed=row.quarantined,
        new=row.inserted,
        changed=row.updated,
        unchanged=row.unchanged,
        rejected=row.rejected,
        duplicates=row.unchanged,
        retried=row.retried,
        throttled=row.throttled,
        fetches=row.requests,
        bytes=row.bytes,
        fetch_p50_s=quantile("fetch_seconds", fetches, 0.5),
        fetch_p95_s=quantile("fetch_seconds", fetches, 0.95),
        attempt_p50_s=quantile("attempt_seconds", attempts, 0.5),
        attempt_p95_s=quantile("attempt_seconds", attempts, 0.95),
        quality=mean_of("quality", histograms),
    )


def mean_of(measure: str, histograms: Histograms) -> float | None:
    """The mean of a histogram's values; None where there are none."""
    count = sum(histograms.get(measure, {}).values())
    return histograms.get(SUMS[measure], {}).get("", 0.0) / count if count else None
