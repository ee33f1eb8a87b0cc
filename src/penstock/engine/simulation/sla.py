"""The promises of a simulation: when they are broken, when they are kept again, and who is told."""

from __future__ import annotations

from collections.abc import Callable

from penstock.engine.simulation.sources import SimulatedRun, SimulatedSource
from penstock.engine.simulation.timeline import Timeline

HOUR_S = 3600.0
BREACHED, RESTORED = "sla.breached", "sla.restored"
# Broken is what is past its time, not what is just at it.
_PAST_S = 0.001

OnSignal = Callable[[SimulatedSource, str, SimulatedRun | None], None]


class SimulatedSla:
    """Holds sources to how fresh they are to be, and their runs to how long they may take."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        # What is to be done when a promise was broken or is kept again; of a deadline, by which run.
        self.on_signal: OnSignal = lambda source, name, run: None

    # How fresh a source is.

    def begin(self, source: SimulatedSource, stale_since: float) -> None:
        """Hold it to its promise from now on; one that is broken, and told to be, is told of no more."""
        if stale_since and stale_since == _stale_since(source):
            source.is_stale, source.stale_since = True, stale_since
            source.figures.freshness_breaches += 1
        self.expect_freshness(source)

    def expect_freshness(self, source: SimulatedSource) -> None:
        """Look at it when its time is over; what is new by then puts that off."""
        since = _stale_since(source)
        if since is not None and since < self._timeline.ends_at:
            at = max(self._timeline.now, since + _PAST_S)
            self._timeline.at(at, lambda: self._look(source, since))

    def _look(self, source: SimulatedSource, since: float) -> None:
        if _stale_since(source) == since:
            self.count_staleness(source)
        else:
            self.expect_freshness(source)

    def be_fresh(self, source: SimulatedSource, *, is_stopped: bool) -> None:
        """A run of it has ended well; one that a budget has stopped counts until that goes on."""
        self.count_staleness(source)
        if is_stopped:
            source.stopped_at = self._timeline.now
        else:
            source.good_at = self._timeline.now
        self._restore(source)

    def go_on(self, source: SimulatedSource) -> None:
        """What a budget had stopped goes on, and has not ended any more."""
        self.count_staleness(source)
        if source.stopped_at:
            source.stopped_at = 0.0
            self.expect_freshness(source)

    def count_staleness(self, source: SimulatedSource) -> None:
        since, now = _stale_since(source), self._timeline.now
        if since is None:
            return
        if since < now:
            self._break(source, since)
            source.figures.stale_hours += (now - max(since, source.judged_until)) / HOUR_S
        source.judged_until = now

    def _break(self, source: SimulatedSource, since: float) -> None:
        if since != source.stale_since:
            source.is_stale, source.stale_since = True, since
            source.figures.freshness_breaches += 1
            self.on_signal(source, BREACHED, None)

    def _restore(self, source: SimulatedSource) -> None:
        if source.is_stale:
            source.is_stale = False
            self.on_signal(source, RESTORED, None)
            self.expect_freshness(source)

    # How long a run takes.

    def expect_end(self, run: SimulatedRun) -> None:
        """Look at a run that was queued just now when it has taken too long."""
        since = _late_since(run)
        if since is not None and since < self._timeline.ends_at:
            self._timeline.at(since + _PAST_S, lambda: self._look_at_run(run, since))

    def _look_at_run(self, run: SimulatedRun, since: float) -> None:
        # One that was set aside and goes on has its time from then.
        if not run.is_ended and _late_since(run) == since:
            self._be_late(run, since)

    def end(self, run: SimulatedRun) -> None:
        """It has ended, in time or not."""
        since = _late_since(run)
        if since is None or since >= self._timeline.now:
            return
        self._be_late(run, since)
        if since in run.source.late_since:
            run.source.late_since.remove(since)
            self.on_signal(run.source, RESTORED, run)

    def _be_late(self, run: SimulatedRun, since: float) -> None:
        source = run.source
        if since > source.last_late:
            # Those that were queued together are late together.
            source.last_late = since
            source.late_since.add(since)
            source.figures.deadline_breaches += 1
            self.on_signal(source, BREACHED, run)


def _stale_since(source: SimulatedSource) -> float | None:
    allowed_s = source.settings.freshness_s
    if allowed_s is None:
        return None
    return round(max(source.good_at, source.stopped_at) + allowed_s, 3)


def _late_since(run: SimulatedRun) -> float | None:
    allowed_s = run.source.settings.deadline_s
    return None if allowed_s is None else run.queued_at + allowed_s
