"""Heat maps of days: which of them had runs that ended how, and which of them a backfill has fetched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import PenstockError, StoreError
from penstock.web.dashboard.charts import Cell, Heat
from penstock.web.dashboard.words import day

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.backfills import BackfillPlan
    from penstock.app.views.runs import RunDetail, RunView

DAY_S, WEEKS = 86400.0, 16
# 1970-01-01 was a Thursday: so many days after a Monday.
FIRST_WEEKDAY = 3
WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
TONES = {"completed": "good", "partial": "warn", "failed": "bad", "cancelled": "1"}
# A longer backfill is shown from its beginning.
MOST_DAYS, MOST_PARTITIONS = 120, 30
WORST = ("failed", "partial", "completed", "cancelled")


def run_days(runs: Sequence[RunView], now: float) -> Heat:
    """The days of the last weeks, each as its worst run has ended."""
    ended: dict[int, set[str]] = {}
    for run in runs:
        if run.finished_at is not None:
            ended.setdefault(int(run.finished_at // DAY_S), set()).add(run.state)
    today = int(now // DAY_S)
    last_monday = today - (today + FIRST_WEEKDAY) % 7
    first = last_monday - (WEEKS - 1) * 7
    cells = []
    for number in range(first, today + 1):
        states = ended.get(number, set())
        worst = next((each for each in WORST if each in states), None)
        tone = "0" if worst is None else TONES[worst]
        title = f"{day(number * DAY_S)}: {worst or 'no run ended'}"
        cells.append(Cell((number - first) // 7, (number - first) % 7, tone, title))
    columns = [
        day((first + 7 * week) * DAY_S)[4:] if week % 4 == 0 else "" for week in range(WEEKS)
    ]
    return Heat(
        title="Runs by day, as the worst of them ended", columns=columns, rows=WEEKDAYS, cells=cells
    )


def backfill_days(project: Project, run: RunDetail) -> Heat | None:
    """The days of a backfill, by partition: what of them is ingested by now."""
    options = run.options
    if run.kind != "backfill" or options.start_at is None or options.end_at is None:
        return None
    try:
        plan = project.backfills.plan(
            run.source,
            options.start_at,
            options.end_at,
            options.partitions,
            missing=True,
            window_s=options.window_s,
        )
    except StoreError:
        raise
    except PenstockError:
        return None  # its source is no longer configured, or otherwise
    return _days_of(plan)


def _days_of(plan: BackfillPlan) -> Heat:
    first, last = int(plan.start_at // DAY_S), int((plan.end_at - 1.0) // DAY_S)
    days = [*range(first, min(last, first + MOST_DAYS - 1) + 1)]
    partitions = (plan.partitions or [""])[:MOST_PARTITIONS]
    cells = []
    for row, partition in enumerate(partitions):
        gaps = [each for each in plan.missing if each.partition == partition]
        for column, number in enumerate(days):
            start, end = number * DAY_S, (number + 1) * DAY_S
            is_missing = any(each.start_at < end and each.end_at > start for each in gaps)
            word = "not whole yet" if is_missing else "ingested"
            title = f"{day(start)} {partition}: {word}"
            cells.append(Cell(column, row, "0" if is_missing else "good", title))
    columns = [day(each * DAY_S)[4:] if at % 7 == 0 else "" for at, each in enumerate(days)]
    return Heat(title="Days of the backfill", columns=columns, rows=partitions, cells=cells)
