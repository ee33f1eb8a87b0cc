"""The watchdog: a loop that stands still past an attempt's time is seen from outside of it."""

from __future__ import annotations

import os
from math import inf

from penstock.engine.worker.deadlines import Deadlines, SharedDeadlines
from penstock.engine.worker.watchdog import PATIENCE_S, PULSE_S, SLEPT_S, StuckLoop, Watchdog
from penstock.testing import VirtualClock

TIMEOUT_S = 2.0


def looks(watchdog: Watchdog, clock: VirtualClock, seconds: float) -> bool:
    """Look once a pulse, as the watchdog's thread does; whether the loop was found stuck."""
    found = watchdog.is_stuck()
    for _ in range(int(seconds / PULSE_S)):
        clock.advance(PULSE_S)
        found = found or watchdog.is_stuck()
    return found


def test_a_step_that_blocks_at_once_is_seen_although_the_loop_never_moves_again() -> None:
    clock, deadlines = VirtualClock(), Deadlines()
    watchdog = Watchdog(clock, deadlines)
    watchdog.pulse()
    deadlines[1, 1] = clock.monotonic() + TIMEOUT_S
    assert not looks(watchdog, clock, TIMEOUT_S + PATIENCE_S)
    assert looks(watchdog, clock, 2 * PULSE_S)


def test_a_step_that_blocks_within_its_own_time_is_left_alone_whatever_ended_before() -> None:
    clock, deadlines = VirtualClock(), Deadlines()
    watchdog = Watchdog(clock, deadlines)
    deadlines[1, 1] = clock.monotonic() + TIMEOUT_S
    watchdog.pulse()
    deadlines.pop((1, 1))
    deadlines[2, 1] = clock.monotonic() + 60.0
    assert not looks(watchdog, clock, 60.0)
    assert looks(watchdog, clock, PATIENCE_S + 2 * PULSE_S)


def test_a_loop_that_moves_may_have_attempts_that_are_late() -> None:
    clock, deadlines = VirtualClock(), Deadlines()
    watchdog = Watchdog(clock, deadlines)
    deadlines[1, 1] = clock.monotonic() + TIMEOUT_S
    for _ in range(100):
        clock.advance(PULSE_S)
        watchdog.pulse()
        assert not watchdog.is_stuck()


def test_who_has_slept_itself_blames_nobody_for_it() -> None:
    stuck = StuckLoop(PATIENCE_S)
    assert not stuck.is_stuck(0.0, pulsed_at=0.0, deadline=1.0)
    woken_at = 100.0
    assert not stuck.is_stuck(woken_at, pulsed_at=0.0, deadline=1.0)
    assert not stuck.is_stuck(woken_at + SLEPT_S, pulsed_at=0.0, deadline=1.0)
    now = woken_at
    while not stuck.is_stuck(now, pulsed_at=0.0, deadline=1.0):
        now += PULSE_S
    assert PATIENCE_S < now - woken_at <= PATIENCE_S + 2 * PULSE_S


def test_the_supervisor_reads_deadlines_that_the_worker_wrote_before_it_stood_still() -> None:
    supervisors = SharedDeadlines.create(places=2, now=5.0)
    workers = SharedDeadlines(os.dup(supervisors.descriptor))
    deadlines = Deadlines(workers)
    assert (supervisors.pulsed_at, supervisors.earliest) == (5.0, inf)
    deadlines[7, 1] = 20.0
    deadlines[8, 3] = 10.0
    workers.pulse(6.0)
    assert (supervisors.pulsed_at, supervisors.earliest) == (6.0, 10.0)
    assert supervisors.overdue(10.0) == [8]
    deadlines[8, 3] = 30.0
    assert supervisors.earliest == 20.0
    deadlines.pop((7, 1))
    deadlines.pop((8, 3))
    assert supervisors.earliest == inf
    workers.close()
    supervisors.close()


def test_more_attempts_than_there_are_places_are_known_to_the_watchdog() -> None:
    shared = SharedDeadlines.create(places=1, now=0.0)
    deadlines = Deadlines(shared)
    deadlines[1, 1], deadlines[2, 1] = 9.0, 4.0
    assert (shared.earliest, deadlines.earliest) == (9.0, 4.0)
    deadlines.pop((2, 1))
    deadlines.pop((1, 1))
    assert (shared.earliest, deadlines.earliest) == (inf, inf)
    shared.close()
