"""Where a simulation begins: what the store knows of a project now. Only reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from penstock.engine.simulation.assumptions import Assumptions, Coming
from penstock.engine.simulation.samples import Past, read_past
from penstock.gates.breaker import Breaker
from penstock.gates.budget import PROJECT, BudgetUsage
from penstock.project import Project
from penstock.schedules.auto import Standing
from penstock.store.breaker_rows import BreakerRow
from penstock.store.budgets import account_of
from penstock.store.health import HealthRow
from penstock.store.rows import SourceRow
from penstock.store.sources import WHOLE_PROJECT
from penstock.store.store import Store

MOST_BREACHES = 100_000


@dataclass(frozen=True, slots=True)
class SourceState:
    """How a source stands when the simulation begins, where that is known."""

    is_paused: bool = False
    # Maintenance of this source.
    is_held: bool = False
    health: HealthRow = field(default_factory=HealthRow)
    breaker: Breaker = field(default_factory=Breaker)
    standing: Standing | None = None
    # What it has to do already.
    backlog: int = 0
    # By schedule: its definition, and its next tick; that of another definition is planned anew.
    next_due: dict[str, tuple[str, float | None]] = field(default_factory=dict)
    # The moments that its steps have announced.
    moments: tuple[float, ...] = ()
    # Since when its promise to be fresh is broken, where somebody was told so already.
    stale_since: float = 0.0


@dataclass(frozen=True, slots=True)
class InitialState:
    """What the simulation goes by: the moment, what the past was like, and how things stand."""

    at: float
    past: dict[str, Past]
    present: dict[str, SourceState] = field(default_factory=dict)
    accounts: tuple[BudgetUsage, ...] = ()
    # Maintenance of everything.
    is_held: bool = False
    # The breakers of hosts.
    hosts: dict[str, Breaker] = field(default_factory=dict)
    # How often what comes to a source from outside, where that was said.
    coming_per_s: Mapping[tuple[str, Coming], float] = field(default_factory=dict)


def read_beginning(project: Project, assumed: Assumptions | None = None) -> InitialState:
    """What is known now of the project's sources; nothing at all where there is no database yet."""
    settings, assumed = project.settings, assumed or Assumptions()
    coming = assumed.coming_per_s
    if not settings.is_on_postgres and not settings.store_file.exists():
        past = {key: Past((assumed.sample,), True) for key in settings.sources}
        return InitialState(project.clock.now(), past, coming_per_s=coming)
    store = project.connection
    rows = {row.key: row for row in store.sources.all()}
    found = store.breakers.all()
    breakers = {row.name: _breaker(row) for row in found if row.kind == "source"}
    hosts = {row.name: _breaker(row) for row in found if row.kind == "host"}
    due = _next_due(store)
    held = {row.scope for row in store.sources.holds()} | _not_active(project)
    stale = _stale_since(store)
    present = {
        key: replace(
            _present(store, row, breakers.get(key), due.get(key, {})),
            is_held=key in held,
            stale_since=stale.get(key, 0.0),
        )
        for key, row in rows.items()
        if key in settings.sources
    }
    accounts = [account_of(row) for row in store.budgets.all() if _is_lasting(row.scope)]
    past = read_past(store, settings.sources, assumed.sample)
    is_held = WHOLE_PROJECT in held
    return InitialState(store.now(), past, present, tuple(accounts), is_held, hosts, coming)


def _not_active(project: Project) -> set[str]:
    """Sources of which nothing starts, because nobody has activated them or they are on legal hold."""
    known = {row.source: row for row in project.connection.onboardings.all()}
    return {
        key
        for key in {*known, *project.settings.sources}
        if project.source_state(key, known.get(key), is_known=True) != "active"
        or (key in known and known[key].legal_hold_at is not None)
    }


def _stale_since(store: Store) -> dict[str, float]:
    rows = store.promises.breaches(open_only=True, limit=MOST_BREACHES)
    return {row.source: row.since for row in rows if row.rule == "freshness"}


def _is_lasting(scope: str) -> bool:
    return scope == PROJECT or scope.startswith("source:")


def _next_due(store: Store) -> dict[str, dict[str, tuple[str, float | None]]]:
    found: dict[str, dict[str, tuple[str, float | None]]] = {}
    for row in store.schedules.all():
        found.setdefault(row.source, {})[row.name] = (row.definition, row.next_due_at)
    return found


def _present(
    store: Store,
    row: SourceRow,
    breaker: Breaker | None,
    due: dict[str, tuple[str, float | None]],
) -> SourceState:
    return SourceState(
        is_paused=row.paused_at is not None,
        health=store.sources.health(row.id),
        breaker=breaker or Breaker(),
        standing=next((each.standing for each in store.cadences.all(row.id)), None),
        backlog=row.queued + row.running + row.waiting,
        next_due=due,
        moments=tuple(store.announcements.of(row.id)),
    )


def _breaker(row: BreakerRow) -> Breaker:
    return Breaker(
        "closed" if row.state == "closed" else "open" if row.state == "open" else "half-open",
        row.since,
        row.opens_at,
        row.opened_at,
        row.counts_until,
        row.trips,
        row.ramp,
        tuple((part, ok, failed) for part, ok, failed in row.buckets),
        row.reason,
    )
