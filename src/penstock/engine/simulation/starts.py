"""The starts of a simulation: ticks and signals become runs, by the rules of the scheduler."""

from __future__ import annotations

import random
from collections.abc import Iterable

from penstock.engine.leader.signals import COUNTING_KINDS
from penstock.engine.simulation.runs import SimulatedRuns
from penstock.engine.simulation.sources import (
    QueuedSignal,
    SimulatedRun,
    SimulatedSchedule,
    SimulatedSource,
)
from penstock.engine.simulation.timeline import Timeline
from penstock.jobs.run import RunKind
from penstock.jobs.signals import is_particular
from penstock.schedules.due import Missed, is_behind, is_late, what_is_due
from penstock.schedules.overlap import meet, strength
from penstock.schedules.start_hours import NEVER, slot_opens_at

Waiter = tuple[SimulatedSource, SimulatedSchedule]


class Starts:
    """Schedules by time, and those that wait for signals."""

    def __init__(
        self, timeline: Timeline, runs: SimulatedRuns, sources: Iterable[SimulatedSource]
    ) -> None:
        self._timeline = timeline
        self._runs = runs
        self._waiters: dict[str, list[Waiter]] = {}
        for source in sources:
            for planned in source.schedules:
                for name in {want.name for want in planned.wants}:
                    self._waiters.setdefault(name, []).append((source, planned))

    # Ticks.

    def plan(self, source: SimulatedSource, planned: SimulatedSchedule, due: float | None) -> None:
        planned.next_due = due
        timeline = self._timeline
        if due is not None and due < timeline.ends_at:
            rank = -strength(planned.settings.run_kind)
            timeline.at(max(due, timeline.now), lambda: self._tick(source, planned, due), rank)

    def _tick(self, source: SimulatedSource, planned: SimulatedSchedule, due_at: float) -> None:
        if planned.next_due != due_at or planned.is_waiting:
            return  # it was planned anew meanwhile
        settings, rule, now = planned.settings, planned.rule(source.level), self._timeline.now
        due = what_is_due(rule, settings.missed, due_at, now)
        is_patient = settings.missed == "all" and (
            is_late(due_at, now) or is_behind(rule, due_at, now)
        )
        is_missed = is_patient or (due.fires is not None and is_late(due.fires, now))
        if (due.passed or is_missed) and not is_patient:
            self._miss(source, len(due.passed) + is_missed)
        if due.fires is None:
            self.plan(source, planned, due.next_due_at)
            return
        if self._fire(source, planned, due.fires, is_patient):
            if is_patient:
                self._miss(source, 1)
            later = due.next_due_at
            if is_patient and later is not None and later <= now:
                planned.next_due = later
                wait_s = 60.0 / settings.catch_up_per_min
                self._timeline.at(now + wait_s, lambda: self._tick(source, planned, later))
            else:
                self.plan(source, planned, later)

    def _miss(self, source: SimulatedSource, ticks: int) -> None:
        source.figures.missed += ticks
        self.signal("schedule.missed", source)

    def _fire(
        self, source: SimulatedSource, planned: SimulatedSchedule, due_at: float, is_patient: bool
    ) -> bool:
        """Start a run for a tick, if it may have one; False if it waits for the run before it."""
        settings, figures = planned.settings, source.figures
        if slot_opens_at(settings, self._timeline.now) is not None:
            figures.denied += 1
            return True
        active = [run.as_active() for run in source.runs.values()]
        kind = self._runs.kind_of(source, RunKind(settings.run_kind))
        met = meet(active, kind, due_at, settings.overlap, is_patient=is_patient)
        if met.act == "wait":
            planned.is_waiting = True
            return False
        if met.act == "skip":
            figures.skipped += 1
        elif met.act != "join":
            self._replace(source, planned)
        return True

    def _replace(
        self, source: SimulatedSource, planned: SimulatedSchedule, signal: str = ""
    ) -> None:
        for run in list(source.runs.values()):
            self._runs.cancel(run)
        self._runs.start(source, RunKind(planned.settings.run_kind), signal)

    def go_on(self, source: SimulatedSource) -> None:
        """A run has ended: what waited for that has its turn."""
        for planned in source.schedules:
            if planned.is_waiting and not source.runs and planned.next_due is not None:
                self._go_on(source, planned, planned.next_due)
            if planned.queue:
                self._deliver_soon(source, planned)

    def _go_on(self, source: SimulatedSource, planned: SimulatedSchedule, due_at: float) -> None:
        """A tick that waited has its turn, with those that came meanwhile."""
        planned.is_waiting = False
        missed: Missed = "all" if planned.settings.missed == "all" else "once"
        due = what_is_due(planned.rule(source.level), missed, due_at, self._timeline.now)
        if self._fire(source, planned, due_at, False):
            self.plan(source, planned, due.next_due_at)

    # Signals.

    def signal_end(self, run: SimulatedRun, name: str) -> None:
        """Something has happened to a run that others may wait for."""
        self.signal(name, run.source, run.kind, run.signal)

    def signal_promise(self, source: SimulatedSource, name: str, run: SimulatedRun | None) -> None:
        """A promise about a source was broken, or is kept again; of a deadline, by this run."""
        self.signal(name, source, raised_by="" if run is None else run.signal)

    def signal(
        self,
        name: str,
        about: SimulatedSource | None,
        kind: RunKind | None = None,
        raised_by: str = "",
    ) -> None:
        """Put a signal into the queue of each schedule that waits for it."""
        of = None if about is None else about.key
        for source, planned in self._waiters.get(name, ()):
            settings = planned.settings
            if settings.kind == "after" and kind not in COUNTING_KINDS:
                continue
            if not any(want.means(name, of, source.key) for want in planned.wants):
                continue
            if len(settings.after) > 1 and not _is_whole(planned, of):
                continue
            self.deliver(source, planned, QueuedSignal(name, raised_by if source is about else ""))

    def deliver(
        self, source: SimulatedSource, planned: SimulatedSchedule, delivery: QueuedSignal
    ) -> None:
        planned.queue.append(delivery)
        self._deliver_soon(source, planned)

    def expect(
        self,
        source: SimulatedSource,
        planned: SimulatedSchedule,
        name: str,
        per_s: float,
        rng: random.Random,
    ) -> None:
        """Let what comes from outside come about so often, by chance."""

        def come() -> None:
            self.deliver(source, planned, QueuedSignal(name))
            self.expect(source, planned, name, per_s, rng)

        at = self._timeline.now + rng.expovariate(per_s)
        if at < self._timeline.ends_at:
            self._timeline.at(at, come)

    def _deliver_soon(self, source: SimulatedSource, planned: SimulatedSchedule) -> None:
        # Not at once: one end may lead to the next.
        self._timeline.at(self._timeline.now, lambda: self._deliver(source, planned))

    def _deliver(self, source: SimulatedSource, planned: SimulatedSchedule) -> None:
        """Make runs of what is in a queue, as far as they may start."""
        settings = planned.settings
        while planned.queue:
            first = planned.queue[0]
            if first.raised_by == first.signal and is_particular(first.signal):
                # A run that was to look after it has come to the same: another one would, too.
                planned.queue.popleft()
                source.figures.skipped += 1
                continue
            opens_at = slot_opens_at(settings, self._timeline.now)
            if opens_at is not None:
                self._await_slot(source, planned, opens_at)
                return
            if source.runs and settings.overlap == "queue":
                return
            planned.queue.popleft()
            if source.runs and settings.overlap == "skip":
                source.figures.skipped += 1
            else:
                self._replace(source, planned, first.signal)

    def _await_slot(
        self, source: SimulatedSource, planned: SimulatedSchedule, opens_at: float
    ) -> None:
        if opens_at != NEVER and opens_at < self._timeline.ends_at:
            self._timeline.at(opens_at, lambda: self._deliver(source, planned))


def _is_whole(planned: SimulatedSchedule, completed: str | None) -> bool:
    """Whether all that it waits for together has completed since it was last started."""
    planned.ran.add(completed or "")
    if not planned.ran.issuperset(planned.settings.after):
        return False
    planned.ran.clear()
    return True
