"""The charts: figures that are maintained as work goes on, never counted when a page asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from penstock.counting import count
from penstock.web.dashboard.charts import Chart, Series, stacked

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.figures import RunFiguresView

DAY_S, HOUR_S = 86400.0, 3600.0
DAYS, HOURS, RUNS, QUALITY_DAYS = 14, 48, 60, 30
# A row of a chart: its label, its tone, and its value for a run.
Row = tuple[str, str, Callable[["RunFiguresView"], float | None]]
OUTCOMES = {"completed": "good", "partial": "warn", "failed": "bad", "cancelled": "soft"}


class Share(NamedTuple):
    """One bucket of a distribution: what it is called, how many are in it, and how many in the fullest."""

    label: str
    number: float
    most: float


def runs_chart(project: Project, now: float) -> Chart:
    """How many runs ended how, day by day."""
    x = _moments(now, DAY_S, DAYS)
    figures = {each: _points(project, "runs", each, x, "day") for each in OUTCOMES}
    return stacked(f"Runs ended, last {count(DAYS, 'day')}", x, OUTCOMES, figures)


def backlog_chart(project: Project, now: float) -> Chart:
    """How many jobs were not done, hour by hour."""
    x = _moments(now, HOUR_S, HOURS)
    found = _points(project, "backlog", None, x, "hour")
    title = f"Backlog, last {count(HOURS, 'hour')}"
    chart = stacked(title, x, {"jobs": "calm"}, {"jobs": found})
    return msgspec.structs.replace(chart, nothing="No figures yet: workers note it every hour.")


def _moments(now: float, step_s: float, number: int) -> list[float]:
    last = now - now % step_s
    return [last - (number - 1 - at) * step_s for at in range(number)]


def _points(
    project: Project, measure: str, label: str | None, x: Sequence[float], step: str
) -> dict[float, float]:
    until = x[-1] + (DAY_S if step == "day" else HOUR_S)
    found = project.figures.series(measure, label=label, since=x[0], until=until, step=step)
    return dict(found.points)


def source_charts(project: Project, source: str) -> list[Chart]:
    """Yield, failures and latency of a source over its ended runs."""
    runs = project.figures.runs(source, limit=RUNS).items[::-1]
    saved: list[Row] = [
        ("new", "good", lambda run: float(run.new)),
        ("changed", "calm", lambda run: float(run.changed)),
        ("unchanged", "soft", lambda run: float(run.unchanged)),
    ]
    rates: list[Row] = [
        ("failed", "bad", lambda run: _percent(run.failed, run.jobs)),
        ("rejected", "warn", lambda run: _percent(run.rejected, run.rejected + _saved(run))),
    ]
    seconds: list[Row] = [
        ("p50", "calm", lambda run: run.fetch_p50_s),
        ("p95", "accent", lambda run: run.fetch_p95_s),
    ]
    return [
        _chart("Records saved by run", "bars", runs, saved),
        _chart("Failed jobs and rejected items by run", "lines", runs, rates, "%"),
        _chart("Fetch latency by run", "lines", runs, seconds, "s"),
    ]


def _chart(
    title: str,
    kind: Literal["bars", "lines"],
    runs: Sequence[RunFiguresView],
    wanted: Sequence[Row],
    unit: str = "",
) -> Chart:
    series = [Series(label, tone, [value(run) for run in runs]) for label, tone, value in wanted]
    return Chart(
        title=title,
        kind=kind,
        x=[each.finished_at for each in runs],
        series=series,
        unit=unit,
        labels=[str(each.id) for each in runs],
        nothing="No run has ended yet." if not runs else "Not measured in these runs.",
    )


def _saved(run: RunFiguresView) -> int:
    return run.new + run.changed + run.unchanged


def _percent(part: int, whole: int) -> float | None:
    return round(100.0 * part / whole, 3) if whole else None


def quality(project: Project, source: str, now: float) -> list[Share]:
    """How many records of the last days have which score."""
    since = now - QUALITY_DAYS * DAY_S
    found = project.figures.breakdown("quality", source, since=since, until=now + DAY_S, step="day")
    most = max(found.labels.values(), default=0.0)
    ordered = sorted(found.labels.items(), key=lambda each: _bound(each[0]))
    return [Share(f"up to {label}", number, most) for label, number in ordered]


def _bound(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return float("inf")
