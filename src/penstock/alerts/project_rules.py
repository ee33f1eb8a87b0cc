"""Rules about the project as a whole: its workers, its disk, its hooks and its routes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from penstock.alerts.history import Cause, CauseKind, Finding, Number, ProjectHistory
from penstock.alerts.rules import RULES as ALL_RULES
from penstock.alerts.rules import Severity
from penstock.alerts.words import duration, share, size
from penstock.counting import count
from penstock.settings.alert_rules import (
    DeadWorkers,
    HookGivenUp,
    RouteDead,
    StoreFull,
    Thresholds,
)

T = TypeVar("T", bound=Thresholds)
DAY_S = 86400.0
# An open alert about the disk ends when this much more than its limit is free.
ROOM = 1.2


@dataclass(frozen=True, slots=True)
class ProjectLook:
    """One rule's look at the project."""

    history: ProjectHistory
    thresholds: Thresholds
    now: float
    is_standing: bool = False

    def by(self, kind: type[T]) -> T:
        """The thresholds, which are of this rule."""
        if not isinstance(self.thresholds, kind):
            raise TypeError(f"{self.thresholds!r} are not {kind.__name__}")
        return self.thresholds

    def finding(
        self,
        rule: str,
        summary: str,
        numbers: tuple[Number, ...],
        cause: Cause,
        since: float,
        *,
        severity: Severity | None = None,
    ) -> Finding:
        return Finding(
            rule=rule,
            source="",
            severity=self.thresholds.severity or severity or ALL_RULES[rule].severity,
            summary=summary,
            numbers=numbers,
            cause=cause,
            since=since,
        )


def _cause(kind: CauseKind, words: str, key: str = "") -> Cause:
    return Cause(kind=kind, key=key, words=words)


def dead_workers(look: ProjectLook) -> Finding | None:
    by, history = look.by(DeadWorkers), look.history
    since = history.unserved_since
    if since is not None and look.now - since >= by.none_for_s:
        age = look.now - since
        number = Number(name="without a worker for", value=age, limit=by.none_for_s, unit="s")
        words = f"no worker is alive, and jobs have been due for {duration(age)}"
        cause = _cause("workers", "no worker is running")
        return look.finding("dead-workers", words, (number,), cause, since)
    dead = [each for each in history.dead_workers if each.died_at > look.now - by.within_s]
    if len(dead) < by.workers:
        return None
    hosts = sorted({each.host for each in dead})
    numbers = (
        Number(name="dead workers", value=len(dead), limit=by.workers, unit="workers"),
        Number(name="alive workers", value=history.alive_workers, unit="workers"),
    )
    words = f"{count(len(dead), 'worker')} died within {duration(by.within_s)} on {', '.join(hosts[:3])}"
    cause = _cause("workers", "a host is short of memory, or a step kills its worker")
    first = min(each.died_at for each in dead)
    return look.finding("dead-workers", words, numbers, cause, first, severity="high")


def store_full(look: ProjectLook) -> Finding | None:
    by, store = look.by(StoreFull), look.history.store
    if store is None or not store.total_bytes:
        return None
    room = ROOM if look.is_standing else 1.0
    free = store.free_bytes / store.total_bytes
    numbers = (
        Number(name="free", value=store.free_bytes, limit=by.free * store.total_bytes, unit="bytes"),
        Number(name="database", value=store.size_bytes, unit="bytes"),
    )  # fmt: skip
    cause = _cause("database", "the disk of the database fills up")
    if free < by.free * room:
        words = f"{size(store.free_bytes)} ({share(free)}) of the database's disk are free"
        return look.finding("store-full", words, numbers, cause, look.now)
    growth = store.growth_bytes_per_day or 0.0
    full_in = store.free_bytes / growth * DAY_S if growth > 0 else float("inf")
    if full_in >= by.full_in_s * room:
        return None
    words = f"the database's disk is full in {duration(full_in)}: it grows by {size(growth)} a day"
    growing = Number(name="growth", value=growth, unit="bytes/day")
    return look.finding("store-full", words, (*numbers, growing), cause, look.now, severity="high")


def hook_given_up(look: ProjectLook) -> Finding | None:
    by = look.by(HookGivenUp)
    since = look.now - by.within_s
    lost = {each.hook: [at for at in each.times if at > since] for each in look.history.given_up}
    lost = {hook: times for hook, times in lost.items() if len(times) >= by.deliveries}
    if not lost:
        return None
    worst = max(lost, key=lambda hook: len(lost[hook]))
    error = next(each.error for each in look.history.given_up if each.hook == worst)
    total = sum(map(len, lost.values()))
    number = Number(name="given up", value=total, limit=by.deliveries, unit="deliveries")
    words = f"{count(total, 'delivery', 'deliveries')} given up, most of them to {worst}"
    words = f"{words}: {error}" if error else words
    cause = _cause("delivery", f"{worst} does not accept deliveries", worst)
    return look.finding(
        "hook-given-up", words, (number,), cause, min(min(t) for t in lost.values())
    )


def route_dead(look: ProjectLook) -> Finding | None:
    by = look.by(RouteDead)
    dead = [each for each in look.history.routes if look.now - each.failing_since >= by.dead_for_s]
    if not dead:
        return None
    worst = min(dead, key=lambda each: each.failing_since)
    number = Number(
        name="failing for", value=look.now - worst.failing_since, limit=by.dead_for_s, unit="s"
    )
    names = ", ".join(sorted(each.route for each in dead)[:3])
    words = f"alerts can't be delivered to {names}: {worst.error or 'deliveries fail'}"
    cause = _cause("delivery", f"{worst.route} does not accept deliveries", worst.route)
    return look.finding("route-dead", words, (number,), cause, worst.failing_since)


RULES: dict[str, Callable[[ProjectLook], Finding | None]] = {
    "dead-workers": dead_workers,
    "store-full": store_full,
    "hook-given-up": hook_given_up,
    "route-dead": route_dead,
}
