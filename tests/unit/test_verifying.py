"""A step's word that what is known of its source's shape is true: buffered, and not from what only looks."""

from __future__ import annotations

import pytest

from penstock.engine.worker.child_protocol import effects_from, pack
from penstock.jobs.effects import Effects
from penstock.jobs.effects.effects import stage
from penstock.jobs.job import Claimed
from penstock.pipeline.attempt import Attempt, StepRun, StepSource
from penstock.pipeline.context import Context
from penstock.pipeline.pipeline import Pipeline
from penstock.testing import VirtualClock
from tests.unit.performing import ListedServices


def verifying(kind: str) -> bool:
    pipeline = Pipeline("shop")

    @pipeline.step(unit="run")
    def look(ctx: Context) -> None:
        pass

    stage = pipeline.compile().stage("look")
    assert stage is not None
    job = Claimed(1, 7, 3, "look", "key", 1, 0, 0, 0, False, "null")
    services, clock = ListedServices(), VirtualClock()
    attempt = Attempt(job, stage, StepSource("acme.com"), StepRun(7, kind), services, clock)
    Context(attempt, "look").schema_verified()
    return attempt.effects.is_schema_verified


@pytest.mark.parametrize("kind", ["full", "incremental", "backfill", "stream"])
def test_step_verifies_the_schema_of_its_source(kind: str) -> None:
    assert verifying(kind)


@pytest.mark.parametrize("kind", ["probe", "replay"])
def test_what_only_looks_verifies_nothing(kind: str) -> None:
    assert not verifying(kind)


def test_word_of_a_step_is_handed_over_and_poured_together() -> None:
    effects = Effects(is_schema_verified=True)
    assert effects
    taken = effects.take()
    assert not effects
    effects.pour(taken)
    effects.pour(Effects())
    assert effects_from(pack(effects)).is_schema_verified, "and comes out of a child process"


@pytest.mark.parametrize("is_redrive", [False, True])
def test_nothing_of_it_is_left_by_a_replay(is_redrive: bool) -> None:
    effects = Effects(is_schema_verified=True)
    stage(effects, is_redrive=is_redrive)
    assert not effects
