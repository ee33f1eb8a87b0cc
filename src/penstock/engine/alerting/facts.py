"""Facts of one moment that all sources share, each read with one query however many sources there are."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from penstock.alerts.history import (
    BreakerFacts,
    BudgetFacts,
    ComplianceFacts,
    DriftFacts,
    GivenUpTask,
    ScheduleFacts,
    SiteFacts,
)
from penstock.gates.budget import PROJECT
from penstock.store.alert_facts import WatchedSource
from penstock.store.rows import BudgetRow
from penstock.store.schedule_rows import ScheduleRow
from penstock.store.store import Store

HOUR_S = 3600.0
CLOSED, MISSED = "closed", "missed"


@dataclass(slots=True)
class Facts:
    """What is known now of each source, by its key; `''` is the project."""

    now: float
    sources: dict[str, WatchedSource] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    breakers: dict[str, BreakerFacts] = field(default_factory=dict)
    closed_hosts: frozenset[str] = frozenset()
    budgets: dict[str, list[BudgetFacts]] = field(default_factory=dict)
    schedules: dict[str, list[ScheduleFacts]] = field(default_factory=dict)
    drifts: dict[str, list[DriftFacts]] = field(default_factory=dict)
    given_up: dict[str, list[GivenUpTask]] = field(default_factory=dict)
    sites: dict[str, list[SiteFacts]] = field(default_factory=dict)
    new_references: dict[str, list[float]] = field(default_factory=dict)
    compliance: dict[str, ComplianceFacts] = field(default_factory=dict)
    # Sources with failures within the last hours.
    failing: set[str] = field(default_factory=set)

    def is_waiting_on_purpose(self, source: WatchedSource) -> bool:
        """Somebody has paused it or holds it, or the whole project."""
        return source.is_paused or "" in self.held or source.key in self.held


def facts_of(store: Store) -> Facts:
    now = store.now()
    facts = Facts(now)
    facts.sources = {each.key: each for each in store.alert_facts.sources()}
    facts.held = {each.scope for each in store.sources.holds()}
    facts.breakers = {
        each.key: BreakerFacts(name=each.name, opened_at=each.opened_at, reason=each.reason)
        for each in store.breakers.all()
        if each.state != CLOSED
    }
    facts.closed_hosts = frozenset(store.hosts.closed())
    facts.budgets = _budgets(store.budgets.all())
    facts.schedules = _schedules(store, now)
    facts.failing = set(store.rollups.by_source("quarantines", now - 2 * HOUR_S, now, "hour"))
    return facts


def _budgets(rows: list[BudgetRow]) -> dict[str, list[BudgetFacts]]:
    """By source; those of single runs have no reset, and end with their run."""
    found: dict[str, list[BudgetFacts]] = defaultdict(list)
    for row in rows:
        if row.resets_at is None:
            continue
        key = "" if row.scope == PROJECT else row.scope.partition(":")[2]
        found[key].append(
            BudgetFacts(
                measure=row.measure,
                period=row.period,
                amount=row.bound,
                used=row.used,
                began_at=row.period_at,
                resets_at=row.resets_at,
            )
        )
    return found


def _schedules(store: Store, now: float) -> dict[str, list[ScheduleFacts]]:
    rows = [row for row in store.schedules.all() if row.next_due_at is not None]
    missed = store.alert_facts.missed_in_a_row(
        [(row.source_id, row.name) for row in rows if row.tick_outcome == MISSED]
    )
    found: dict[str, list[ScheduleFacts]] = defaultdict(list)
    for row in rows:
        overdue = row.next_due_at if (row.next_due_at or now) < now else None
        found[row.source].append(
            ScheduleFacts(
                name=row.name,
                interval_s=_interval_s(row),
                misses_in_a_row=missed.get((row.source_id, row.name), 0),
                overdue_since=overdue,
            )
        )
    return found


def _interval_s(row: ScheduleRow) -> float:
    """From its last tick to the next; an hour where it has had none."""
    last = row.tick_at or row.last_due_at
    if row.next_due_at is None or last is None or last >= row.next_due_at:
        return HOUR_S
    return row.next_due_at - last
