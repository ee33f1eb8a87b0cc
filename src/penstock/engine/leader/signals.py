"""Signals that start runs: whoever leads hands each to the schedules that wait for it.

First every open signal is put into the queues of those who wait for it, then each queue's first is made a
run if it may start now. Both are decided in the database, so that any number may deliver at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from msgspec.structs import replace

from penstock.errors import PenstockError, StoreError
from penstock.jobs.run import RunKind
from penstock.jobs.run_policy import kind_to_run, policy_of
from penstock.jobs.signals import (
    FILE_LANDED,
    RUN_COMPLETED,
    AwaitedSignal,
    SignalFacts,
    is_particular,
    wanted,
)
from penstock.pipeline.version import version_of
from penstock.project import Project, run_options
from penstock.schedules.start_hours import NEVER, slot_opens_at
from penstock.settings import ScheduleSettings, SourceSettings
from penstock.store.deliveries import Place, QueuedRow, Start
from penstock.store.signals import SignalRow
from penstock.store.store import Store

BATCH = 500
# In one look; what is left is looked at in the next.
MOST_STARTS = 1000
# The runs whose end starts those that come after: what a schedule starts, not a look into the past.
COUNTING_KINDS = tuple(kind for kind in RunKind if policy_of(kind).starts_others)


@dataclass(frozen=True, slots=True)
class Waiter:
    """A schedule that waits for something else than the time."""

    source_id: int
    source: SourceSettings
    schedule: ScheduleSettings
    wants: tuple[AwaitedSignal, ...]

    @property
    def place(self) -> Place:
        return self.source_id, self.schedule.name

    @property
    def is_gathering(self) -> bool:
        return len(self.schedule.after) > 1

    def means(self, signal: SignalRow) -> bool:
        if self.schedule.kind == "after" and _data(signal, "kind") not in COUNTING_KINDS:
            return False
        is_named = self.schedule.kind == "watch" or self.schedule.is_external
        if is_named and _data(signal, "schedule") != self.schedule.name:
            return False
        return any(want.means(signal.name, signal.source, self.source.key) for want in self.wants)


def _data(signal: SignalRow, name: str) -> object:
    return signal.data.get(name) if isinstance(signal.data, dict) else None


def wants_of(schedule: ScheduleSettings) -> tuple[AwaitedSignal, ...]:
    """The signals that a schedule waits for."""
    if schedule.is_external:
        return tuple(wanted(text) for text in schedule.signals)
    match schedule.kind:
        case "signal":
            return tuple(wanted(text) for text in schedule.signals)
        case "after":
            return tuple(AwaitedSignal(RUN_COMPLETED, of) for of in schedule.after)
        case "watch":
            return (AwaitedSignal(FILE_LANDED),)
    return ()


class SignalChore:
    """Delivers what was signalled. `receivers` are handed each signal before it is closed, at least once."""

    def __init__(
        self,
        project: Project,
        store: Store,
        receivers: Sequence[Callable[[SignalRow], object]] = (),
    ) -> None:
        self._project = project
        self._store = store
        self._receivers = receivers
        self._waiters: dict[Place, Waiter] = {}
        self._by_name: dict[str, list[Waiter]] = {}
        self._needs: dict[Place, frozenset[int]] = {}

    def plan(self) -> None:
        """Learn who waits for what by this project's configuration."""
        sources = self._project.settings.sources
        ids = self._store.sources.ensure(list(sources))
        self._waiters, self._by_name, self._needs = {}, {}, {}
        for key, source in sources.items():
            for schedule in source.schedules:
                wants = wants_of(schedule)
                if wants:
                    waiter = Waiter(ids[key], source, schedule, wants)
                    self._waiters[waiter.place] = waiter
                    for name in {want.name for want in wants}:
                        self._by_name.setdefault(name, []).append(waiter)
                    self._needs[waiter.place] = frozenset(ids[of] for of in schedule.after)
        self._store.deliveries.regather(self._needs)

    def look(self, may_go_on: Callable[[], bool] = lambda: True) -> list[int]:
        """Deliver what is open, and start what may start; answers with the runs."""
        while may_go_on() and (found := self._store.deliveries.open_signals(BATCH)):
            self._deliver(found)
        started: list[int] = []
        waits: set[Place] = set()
        for _ in range(MOST_STARTS):
            first = [row for row in self._store.deliveries.queued() if row.place not in waits]
            if not first:
                break
            for row in first:
                if not may_go_on():
                    return started
                run_id = self._start(row)
                if run_id is None:
                    waits.add(row.place)
                elif run_id:
                    started.append(run_id)
        return started

    def _deliver(self, signals: list[SignalRow]) -> None:
        queued: list[tuple[int, Place]] = []
        waiting: list[tuple[int, Place]] = []
        for signal in signals:
            for receive in self._receivers:
                receive(signal)
            for waiter in self._by_name.get(signal.name, ()):
                if waiter.means(signal):
                    into = waiting if waiter.is_gathering else queued
                    into.append((signal.id, waiter.place))
        self._store.deliveries.deliver(
            [signal.id for signal in signals], queued, waiting, self._needs
        )

    def _start(self, row: QueuedRow) -> int | None:
        """The run that was started; 0 if none is to be, None if it has to wait."""
        waiter = self._waiters.get(row.place)
        if waiter is None:
            self._store.deliveries.skip(row, "no schedule waits for it any more")
            return 0
        if row.raised_by == row.signal.name and is_particular(row.signal.name):
            # A run that was to look after it has come to the same: another one would, too.
            self._store.deliveries.skip(
                row, "the run that raised it was started by the same signal"
            )
            return 0
        opens_at = slot_opens_at(waiter.schedule, self._store.now())
        if opens_at is not None:
            self._store.deliveries.put_off(row, f"outside its hours; {_slot(opens_at)}")
            return None
        try:
            start = self._plan_start(waiter, row)
        except StoreError:
            raise
        except PenstockError as error:  # a pipeline that can't be loaded now
            self._store.deliveries.put_off(row, error.message)
            return None
        run_id = self._store.deliveries.start(row, start)
        if run_id is None and start.overlap == "skip":
            return 0
        return run_id

    def _plan_start(self, waiter: Waiter, row: QueuedRow) -> Start:
        source, schedule, signal = waiter.source, waiter.schedule, row.signal
        health = self._store.sources.health(waiter.source_id)
        kind = kind_to_run(schedule.run_kind, is_degraded=health.degraded_at is not None)
        self._project.refuse_inactive(source.key, kind)
        graph = self._project.graph(source)
        runs = dict(row.runs)
        if schedule.kind == "after" and signal.source is not None:
            runs[signal.source] = signal.run_id
        about = (signal.id, signal.name, signal.data, signal.source, signal.run_id or None, runs)
        return Start(
            kind,
            graph.plan(source.priority, kind),
            version_of(graph, source),
            replace(run_options(source), signal=SignalFacts(*about)),
            f"{schedule.name}: signal {signal.name} ({signal.id})",
            schedule.overlap,
        )


def _slot(opens_at: float) -> str:
    if opens_at == NEVER:
        return "and there are none"
    return f"the next slot is {datetime.fromtimestamp(opens_at, UTC):%Y-%m-%d %H:%M} UTC"
