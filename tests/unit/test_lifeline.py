"""The lifeline: beats are counted from when they were asked for, and when they end so does the worker."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from penstock.engine.worker.lifeline import Lifeline
from penstock.testing import VirtualClock

TRUST_S = 12.0


class Heard:
    def __init__(self) -> None:
        self.trusted_until = 0.0
        self.drains = 0

    def trust_until(self, monotonic: float) -> None:
        self.trusted_until = monotonic

    def drain(self) -> None:
        self.drains += 1


class Line:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.out, self.into = os.pipe()
        self.lifeline = Lifeline(self.out, self.clock, TRUST_S, lambda: None)

    def say(self, text: str) -> None:
        os.write(self.into, text.encode())

    def hang_up(self) -> None:
        os.close(self.into)
        self.into = -1


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    os.close(made.out)
    if made.into >= 0:
        made.hang_up()


def test_first_line_is_a_beat_or_there_is_no_work(line: Line) -> None:
    line.say("beat 0.0\n")
    assert line.lifeline.wait_for_beat()


@pytest.mark.parametrize("said", ["drain\n", ""])
def test_worker_that_is_told_to_drain_or_forgotten_before_its_first_beat_never_works(
    line: Line, said: str
) -> None:
    line.say(said)
    line.hang_up()
    assert not line.lifeline.wait_for_beat()


def test_what_was_said_before_somebody_listened_is_told_then(line: Line) -> None:
    heard = Heard()
    line.say("beat 5.0\ndrain\n")
    assert line.lifeline.wait_for_beat()
    line.lifeline.attach(heard)
    assert (heard.trusted_until, heard.drains) == (5.0 + TRUST_S, 1)
    line.say("drain\nbeat 8.")
    assert line.lifeline.look()
    assert (heard.trusted_until, heard.drains) == (5.0 + TRUST_S, 2)
    line.say("0\n")
    assert line.lifeline.look()
    assert heard.trusted_until == 8.0 + TRUST_S


def test_worker_is_over_when_no_beat_came_in_time(line: Line) -> None:
    line.say("beat 0.0\n")
    line.lifeline.wait_for_beat()
    line.clock.advance(TRUST_S)
    assert not line.lifeline.look()


def test_beat_that_came_in_time_counts_however_late_it_is_read(line: Line) -> None:
    line.say("beat 0.0\n")
    line.lifeline.wait_for_beat()
    line.clock.advance(TRUST_S + 1)
    line.say("beat 9.0\n")
    assert line.lifeline.look()
    line.say("beat 12.0\n")
    assert line.lifeline.look()


def test_old_beats_in_the_pipe_wake_nobody_from_the_dead(line: Line) -> None:
    line.say("beat 0.0\n")
    line.lifeline.wait_for_beat()
    line.clock.advance(60.0)
    line.say("beat 3.0\nbeat 6.0\n")
    assert line.lifeline.look()
    assert not line.lifeline.look()


def test_worker_is_over_when_its_supervisor_is_gone(line: Line) -> None:
    line.say("beat 0.0\n")
    line.lifeline.wait_for_beat()
    line.hang_up()
    assert not line.lifeline.look()
