"""The signals of runbooks that are about the whole project: workers, queues, schedules, the database."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.app.views.quarantine import EntryFilter
from penstock.counting import count
from penstock.errors import StoreError
from penstock.jobs.failures import POISON
from penstock.runbooks.runbook import UNKNOWN, Reading

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.app.views.budgets import BudgetView
    from penstock.app.views.hooks import HookDeliveryView
    from penstock.app.views.overview import OverviewView
    from penstock.app.views.schedules import ScheduleView
    from penstock.app.views.workers import WorkerView
    from penstock.store.rows import RunRow

SHOWN = 5
HOUR_S = 3600.0
# Of a queue that nothing leaves: longer than anybody waits.
FOREVER_H = 999.0
MOST_DELIVERIES, MOST_RUNS = 500, 100
NOT_STARTED = ("missed", "skipped", "denied")


class ProjectSignals:
    """The readings of a project, or of its part that concerns one source, at one moment."""

    def __init__(self, project: Nouns, source: str | None) -> None:
        self._project = project
        self._source = source

    def store_reachable(self) -> Reading:
        """Opens a connection if there is none, or if it was lost."""
        try:
            self._project.connection.now()
        except StoreError as error:
            return Reading(False, error.message)
        return Reading(True, f"{self._project.settings.store_name} answers")

    def store_size(self) -> Reading:
        view = self._project.store.view()
        return Reading(view.bytes, view.store)

    def disk_free(self) -> Reading:
        """Of the fullest of the file systems that matter."""
        found = [(shutil.disk_usage(place), place) for place in self._places()]
        if not found:
            return UNKNOWN
        usage, place = min(found, key=lambda each: each[0].free / max(each[0].total, 1))
        return Reading(
            usage.free / max(usage.total, 1),
            f"{usage.free // 2**20:,} of {usage.total // 2**20:,} MiB are free at {place.name}",
        )

    def workers(self) -> Reading:
        alive = [each for each in self._workers if each.is_alive]
        return Reading(len(alive), ", ".join(sorted({each.host for each in alive})[:SHOWN]))

    def dead_workers(self) -> Reading:
        dead = [each for each in self._workers if not each.is_alive]
        return Reading(
            len(dead), "", tuple(f"pid {each.pid} on {each.host}" for each in dead[:SHOWN])
        )

    def stale_workers(self) -> Reading:
        stale = self._project.workers.stale()
        told = tuple(f"pid {each.pid}: {', '.join(each.files[:SHOWN])}" for each in stale[:SHOWN])
        return Reading(len(stale), "", told)

    def scheduler(self) -> Reading:
        found = self._project.workers.scheduler()
        return Reading(found is not None, "" if found is None else found.holder)

    def quarantined(self) -> Reading:
        return Reading(self._overview.quarantined, count(self._overview.quarantined, "job"))

    def poison(self) -> Reading:
        wanted = EntryFilter(source=self._source, kind=POISON)
        number = self._project.quarantine.count(wanted)
        found = self._project.quarantine.list(wanted, limit=SHOWN).items if number else []
        told = tuple(
            f"job {each.id} of {each.source}, {each.stage}: {each.error}" for each in found
        )
        return Reading(number, count(number, "job"), told)

    def held(self) -> Reading:
        holds = [each for each in self._project.sources.holds() if each.source is None]
        return Reading(bool(holds), "; ".join(f"{each.actor}: {each.reason}" for each in holds))

    def breaker_open(self) -> Reading:
        found = [each for each in self._project.breakers.each() if each.state != "closed"]
        told = tuple(f"{each.key}: {each.reason}" for each in found[:SHOWN])
        return Reading(bool(found), ", ".join(each.key for each in found[:SHOWN]), told)

    def queued(self) -> Reading:
        rows = sorted(self._project.connection.sources.all(), key=lambda row: -row.queued)
        told = tuple(f"{row.key}: {row.queued:,} queued" for row in rows[:SHOWN] if row.queued)
        return Reading(self._overview.queued, count(self._overview.queued, "job"), told)

    def active_runs(self) -> Reading:
        return Reading(self._overview.active_runs)

    def backlog_hours(self) -> Reading:
        """The queued jobs at the rate at which jobs end."""
        rows = self._project.connection.runs.newest(self._source, active_only=True, limit=MOST_RUNS)
        queued = sum(row.queued for row in rows)
        if not queued:
            return Reading(0.0, "nothing is queued")
        rate = self._rate(rows)
        hours = FOREVER_H if rate <= 0 else min(FOREVER_H, queued / rate / HOUR_S)
        pace = (
            f"{count(round(rate * HOUR_S), 'job')} end in an hour" if rate > 0 else "nothing ends"
        )
        return Reading(hours, f"{count(queued, 'job')} are queued, {pace}")

    def _rate(self, rows: Sequence[RunRow]) -> float:
        """Jobs that end in a second: in this hour and the last one, or so far in these runs if that is not
        summed yet."""
        now = self._project.now()
        series = self._project.figures.series("jobs", self._source, since=now - 2 * HOUR_S)
        if series.points:
            ended = sum(value for _, value in series.points)
            return ended / max(now - series.points[0][0], 1.0)
        return sum(
            (row.succeeded + row.skipped) / max(now - row.started_at, 1.0)
            for row in rows
            if row.started_at is not None
        )

    def stopped(self) -> Reading:
        wanted = None if self._source is None else [self._source]
        found = [each for each in self._project.outlook(wanted) if each.stops]
        told = tuple(f"{each.source}: {each.stops[0].by or each.stops[0].name}" for each in found)
        return Reading(len(found), count(len(found), "source"), told[:SHOWN])

    def overdue(self) -> Reading:
        late = [each for each in self._schedules if each.overdue_s > 0]
        told = tuple(f"{each.source} {each.name}: {each.overdue_s:,.0f} s" for each in late[:SHOWN])
        return Reading(len(late), count(len(late), "schedule"), told)

    def missed(self) -> Reading:
        """Those after which the source has not run: a run that was started by hand covers it."""
        ran = {
            row.key: row.last_finished_at or 0.0 for row in self._project.connection.sources.all()
        }
        lost = [
            each
            for each in self._schedules
            if each.last_outcome in NOT_STARTED and (each.last_tick_at or 0.0) > ran[each.source]
        ]
        told = tuple(
            f"{each.source} {each.name}: {each.last_outcome}, {each.last_reason}"
            for each in lost[:SHOWN]
        )
        return Reading(len(lost), count(len(lost), "schedule"), told)

    def budget_used(self) -> Reading:
        if not self._budgets:
            return UNKNOWN
        most = max(self._budgets, key=lambda each: each.percent)
        return Reading(most.percent / 100, _budget_words(most))

    def budget_short(self) -> Reading:
        short = [each for each in self._budgets if each.is_exhausted or each.exhausted_at]
        return Reading(len(short), "", tuple(_budget_words(each) for each in short[:SHOWN]))

    def given_up(self) -> Reading:
        return _deliveries([each for each in self._undelivered if each.state == "given up"])

    def failing(self) -> Reading:
        return _deliveries([each for each in self._undelivered if each.state == "failing"])

    def _places(self) -> list[Path]:
        settings = self._project.settings
        places = [] if settings.is_on_postgres else [settings.store_file.parent]
        places += [settings.snapshots] if isinstance(settings.snapshots, Path) else []
        return [place for place in places if place.exists()]

    @cached_property
    def _workers(self) -> Sequence[WorkerView]:
        return list(self._project.workers.each())

    @cached_property
    def _overview(self) -> OverviewView:
        return self._project.overview()

    @cached_property
    def _schedules(self) -> Sequence[ScheduleView]:
        return list(self._project.schedules.each(self._source))

    @cached_property
    def _budgets(self) -> Sequence[BudgetView]:
        return list(self._project.budgets.each(source=self._source))

    @cached_property
    def _undelivered(self) -> Sequence[HookDeliveryView]:
        return list(self._project.hooks.each(undelivered=True, limit=MOST_DELIVERIES))


def _budget_words(budget: BudgetView) -> str:
    whose = budget.source or (f"run {budget.run}" if budget.run else "project")
    return (
        f"{whose}: {budget.used:,.10g} of {budget.bound:,.10g} {budget.measure} a {budget.period}"
    )


def _deliveries(found: Sequence[HookDeliveryView]) -> Reading:
    told = tuple(f"{each.id} to {each.hook}: {each.error}" for each in found[:SHOWN])
    return Reading(len(found), count(len(found), "delivery", "deliveries"), told)
