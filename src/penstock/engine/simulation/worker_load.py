"""The load of a simulation: the jobs that are waiting and the slots that are taken, now and day by day."""

from __future__ import annotations

from penstock.engine.simulation.figures import Figures
from penstock.engine.simulation.timeline import Timeline

DAY_S = 86_400.0


class WorkerLoad:
    """How much there is to do, and how much of the workers is in use."""

    def __init__(self, timeline: Timeline, figures: Figures) -> None:
        self._timeline = timeline
        self._figures = figures
        self._slots = figures.slots
        self.free = figures.slots
        self._least_free = figures.slots
        self._backlog = 0
        self._backlog_peak = 0
        self._busy_s = 0.0
        self._busy_before = 0.0
        self._changed_at = timeline.now

    def grow(self, jobs: int) -> None:
        """So many more jobs have not been done yet; fewer, if it is below 0."""
        self._backlog += jobs
        if self._backlog > self._backlog_peak:
            self._backlog_peak = self._backlog

    def hold(self, places: int) -> None:
        """So many more slots are taken; fewer, if it is below 0."""
        self._count_use()
        self.free -= places
        if self.free < self._least_free:
            self._least_free = self.free

    def end_day(self) -> None:
        self._count_use()
        figures = self._figures
        figures.backlog_by_day.append(self._backlog_peak)
        figures.use_by_day.append((self._busy_s - self._busy_before) / (self._slots * DAY_S))
        figures.backlog_peak = max(figures.backlog_peak, self._backlog_peak)
        self._busy_before = self._busy_s
        self._backlog_peak = self._backlog

    def tell(self) -> None:
        """Put down what it came to in all."""
        self._count_use()
        figures, took_s = self._figures, self._timeline.now - self._figures.began_at
        figures.worker_use = self._busy_s / (self._slots * took_s) if took_s else 0.0
        figures.worker_use_peak = (self._slots - self._least_free) / self._slots
        figures.backlog_at_end = self._backlog

    def _count_use(self) -> None:
        now = self._timeline.now
        self._busy_s += (self._slots - self.free) * (now - self._changed_at)
        self._changed_at = now
