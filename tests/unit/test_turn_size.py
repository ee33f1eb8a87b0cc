"""A turn writes no more than one transaction can hold in time."""

from __future__ import annotations

from penstock.engine.worker.turn_size import that_fit
from penstock.jobs.effects import MOST_EFFECT_BYTES, MOST_EFFECTS, Effects, Note
from penstock.jobs.job import JobState, NewJob
from penstock.jobs.outcome import Settlement


def ended(effects: Effects | None = None) -> Settlement:
    return Settlement(1, 1, JobState.SUCCEEDED, effects=effects or Effects())


def test_small_ends_share_one_turn() -> None:
    assert that_fit([]) == 0
    assert that_fit([ended(), ended(Effects(notes=[Note("x")]))] * 500) == 1000


def test_large_ends_are_written_one_after_the_other() -> None:
    many = ended(Effects(notes=[Note("x")] * (MOST_EFFECTS // 2)))
    assert that_fit([many, ended(), many, many, ended()]) == 3

    long = [NewJob("s", "k", b"x" * (MOST_EFFECT_BYTES // 1000), 5)] * 1000
    assert that_fit([ended(), ended(Effects(children=long)), ended()]) == 2
