"""Histories: what the rules are shown of one source, and of the project as a whole."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.alerts.history import (
    BreakerFacts,
    DeadWorker,
    GivenUp,
    History,
    HourFigures,
    Outcome,
    ProjectHistory,
    RouteFacts,
    RunFigures,
    StoreFacts,
)
from penstock.alerts.sample import LONGEST_S, MOST_RUNS, USUAL_S, plan_of
from penstock.engine.alerting.facts import HOUR_S, Facts
from penstock.http.reach import reach_of
from penstock.project import Project
from penstock.settings.values import SourceSettings
from penstock.store.alert_facts import WatchedRun, WatchedSource
from penstock.store.alert_rows import ROUTE
from penstock.store.rows import Cursor
from penstock.store.store import Store

DAY_S = 86_400.0
# How far back a source's hours are shown.
HOURS_S = 14 * DAY_S
GIVEN_UP_S = 7 * DAY_S
# Sizes of the database are remembered for so long; growth is not known before there are a few hours of them.
SIZES_S, GROWTH_S = 7 * DAY_S, 6 * HOUR_S
REAPED = ("worker.reaped",)
OUTCOMES: dict[str, Outcome] = {
    "completed": "completed",
    "partial": "partial",
    "failed": "failed",
    "cancelled": "cancelled",
}


def hosts_of(source: SourceSettings) -> tuple[str, ...]:
    """The hosts that a source reads from, as far as its configuration names them."""
    named = [host for host in source.fetch.hosts or () if "*" not in host]
    own = reach_of(source.fetch.addresses, None).own
    # The key's host is reached with and without `www.`: it is one site.
    return tuple(dict.fromkeys([*(host.removeprefix("www.") for host in own), *named]))


@dataclass(frozen=True, slots=True)
class ShownRuns:
    """The ended runs of a source that the rules look at, oldest first; a sample before `whole_from`."""

    rows: Sequence[WatchedRun]
    whole_from: float = 0.0

    @property
    def last(self) -> tuple[int, float]:
        """Which run is the newest, and when the last one ended: a run that was opened again ends later."""
        ends = (run.finished_at for run in self.rows)
        return (self.rows[-1].id, max(ends)) if self.rows else (0, 0.0)


def runs_of(store: Store, facts: Facts, source: SourceSettings) -> ShownRuns:
    source_id, now = facts.sources[source.key].id, facts.now
    newest = store.alert_facts.runs(source_id, now - LONGEST_S, MOST_RUNS)
    plan = plan_of([run.started_at for run in newest], now)
    whole = newest[plan.first :]
    if not plan.share:
        return ShownRuns(whole)
    about = (source_id, now - USUAL_S, MOST_RUNS)
    earlier = store.alert_facts.runs(*about, before_id=whole[0].id, share=plan.share)
    return ShownRuns(earlier + whole, whole[0].started_at)


def history_of(store: Store, facts: Facts, source: SourceSettings, runs: ShownRuns) -> History:
    """All that the rules see of one source."""
    watched = facts.sources[source.key]
    hosts = hosts_of(source)
    failing = tuple(host for host in hosts if _breaker_of(facts, host))
    broken = [facts.breakers.get(f"source:{source.key}"), *(_breaker_of(facts, h) for h in failing)]
    return History(
        source=source.key,
        runs=_figures(store, runs.rows),
        whole_from=runs.whole_from,
        hours=_hours(store, facts, watched),
        waiting=watched.waiting,
        schedules=tuple(facts.schedules.get(source.key, ())),
        budgets=tuple(facts.budgets.get(source.key, ())),
        breakers=tuple(each for each in broken if each is not None),
        drifts=tuple(facts.drifts.get(source.key, ())),
        given_up=tuple(facts.given_up.get(source.key, ())),
        sites=tuple(facts.sites.get(source.key, ())),
        new_references=tuple(facts.new_references.get(source.key, ())),
        compliance=facts.compliance.get(source.key),
        hosts=hosts,
        failing_hosts=failing,
        closed_hosts=tuple(host for host in hosts if _is_closed(facts, host)),
        last_good_at=watched.good_at,
        freshness_s=source.freshness_s,
        timezone=next((each.timezone for each in source.schedules), "UTC"),
        is_waiting_on_purpose=facts.is_waiting_on_purpose(watched),
        changed_at=_changed_at(runs.rows),
    )


def budget_history(facts: Facts) -> History:
    """The budgets of all sources together, as if the project were a source without a name."""
    return History(source="", budgets=tuple(facts.budgets.get("", ())))


def _breaker_of(facts: Facts, host: str) -> BreakerFacts | None:
    return facts.breakers.get(f"host:{host}") or facts.breakers.get(f"host:www.{host}")


def _is_closed(facts: Facts, host: str) -> bool:
    return not facts.closed_hosts.isdisjoint((host, f"www.{host}"))


def _figures(store: Store, runs: Sequence[WatchedRun]) -> tuple[RunFigures, ...]:
    measured = store.rollups.of_runs([run.id for run in runs]) if runs else {}
    return tuple(
        RunFigures(
            run=run.id,
            started_at=run.started_at,
            ended_at=run.finished_at,
            outcome=OUTCOMES[run.state],
            jobs=run.ended,
            failed=run.failed,
            new=run.inserted,
            changed=run.updated,
            unchanged=run.unchanged,
            rejected=run.rejected,
            duplicates=run.duplicates,
            quality=_mean(measured.get(run.id, {})),
        )
        for run in runs
        if run.state in OUTCOMES
    )


def _mean(measured: dict[str, dict[str, float]]) -> float | None:
    scored = sum(measured.get("quality", {}).values())
    return sum(measured.get("quality_sum", {}).values()) / scored if scored else None


def _hours(store: Store, facts: Facts, source: WatchedSource) -> tuple[HourFigures, ...]:
    """The hours of the last weeks; none where nothing waits and nothing has failed of late."""
    if not source.waiting and source.key not in facts.failing:
        return ()
    first = facts.now - HOURS_S
    first -= first % HOUR_S
    about = (source.id, first, facts.now)
    ended = dict(store.rollups.series("jobs", *about))
    failed = dict(store.rollups.series("quarantines", *about))
    backlog = dict(store.rollups.series("backlog", *about))
    found: list[HourFigures] = []
    open_before = 0.0
    for number in range(int((facts.now - first) // HOUR_S) + 1):
        at = first + number * HOUR_S
        open_now = backlog.get(at, open_before)
        arrived = max(0.0, ended.get(at, 0.0) + open_now - open_before)
        open_before = open_now
        counts = (int(arrived), int(ended.get(at, 0.0)), int(failed.get(at, 0.0)))
        found.append(HourFigures(at=at, arrived=counts[0], ended=counts[1], failed=counts[2]))
    return tuple(found)


def _changed_at(runs: Sequence[WatchedRun]) -> float | None:
    """When the first run with the present version of its pipeline began; None if there was no other."""
    for earlier, later in zip(runs[-2::-1], runs[:0:-1], strict=True):
        if earlier.pipeline_version != later.pipeline_version:
            return later.started_at
    return None


class ProjectWatch:
    """What has to be remembered to say how the project as a whole stands."""

    def __init__(self, project: Project, store: Store) -> None:
        self._store = store
        self._database = _file_of(project)
        self._sizes: deque[tuple[float, int]] = deque()
        self._hosts: dict[str, str] = {}
        self._dead: list[DeadWorker] = []
        self._cursor: Cursor | None = None
        self._unserved_since: float | None = None

    def history(self, facts: Facts) -> ProjectHistory:
        alive = self._alive(facts.now)
        undelivered = self._store.alert_facts.undelivered(facts.now - GIVEN_UP_S)
        return ProjectHistory(
            alive_workers=alive,
            dead_workers=tuple(self._reaped(facts.now)),
            unserved_since=self._unserved(facts, alive),
            store=self._disk(facts.now),
            given_up=tuple(
                GivenUp(hook=each.hook, times=tuple(each.given_up), error=each.error)
                for each in undelivered
                if each.given_up and not each.hook.startswith(ROUTE)
            ),
            routes=tuple(
                RouteFacts(
                    route=each.hook.removeprefix(ROUTE),
                    failing_since=each.failing_since,
                    failed=each.failed,
                    error=each.error,
                )
                for each in undelivered
                if each.failing_since is not None and each.hook.startswith(ROUTE)
            ),
        )

    def _alive(self, now: float) -> int:
        rows = self._store.workers.all()
        self._hosts |= {row.id: row.host for row in rows}
        return sum(row.lease_expires_at > now for row in rows)

    def _reaped(self, now: float) -> list[DeadWorker]:
        """Workers that were found dead since this host began to lead."""
        rows, self._cursor = self._store.journal.follow_kinds(self._cursor, REAPED)
        for row in rows:
            name = row.worker or row.actor
            host = self._hosts.pop(name, "an unknown host")
            self._dead.append(DeadWorker(worker=name, host=host, died_at=row.at))
        self._dead = [each for each in self._dead if each.died_at > now - DAY_S]
        return self._dead

    def _unserved(self, facts: Facts, alive: int) -> float | None:
        """Since when, as far as was seen, jobs wait and nobody works; what is held back waits on purpose."""
        waits = any(
            each.waiting and not facts.is_waiting_on_purpose(each)
            for each in facts.sources.values()
        )
        if alive or not waits:
            self._unserved_since = None
        elif self._unserved_since is None:
            self._unserved_since = facts.now
        return self._unserved_since

    def _disk(self, now: float) -> StoreFacts | None:
        """Of a database in a file; a server's disk is the server's own affair."""
        if self._database is None or not self._database.exists():
            return None
        size = self._database.stat().st_size
        disk = shutil.disk_usage(self._database.parent)
        if not self._sizes or self._sizes[-1][0] <= now - HOUR_S:
            self._sizes.append((now, size))
        while self._sizes[0][0] < now - SIZES_S:
            self._sizes.popleft()
        return StoreFacts(
            size_bytes=size,
            free_bytes=disk.free,
            total_bytes=disk.total,
            growth_bytes_per_day=self._growth(now, size),
        )

    def _growth(self, now: float, size: int) -> float | None:
        first_at, first = self._sizes[0]
        return (size - first) / (now - first_at) * DAY_S if now - first_at >= GROWTH_S else None


def _file_of(project: Project) -> Path | None:
    return None if project.settings.is_on_postgres else project.settings.store_file
