"""Counters on Postgres: every transaction adds tallies, and no row is updated while a run goes on."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.store.postgres.database import SUM_AFTER
from tests.contract.conftest import STORES
from tests.contract.scenes import SQLITE, StoreKind, World, a_save, done

TURNS = 5 * SUM_AFTER
STAGES = 3


@pytest.fixture(params=[kind for kind in STORES if kind is not SQLITE], ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> StoreKind:
    found: StoreKind = request.param
    return found


def rows(world: World, table: str) -> list[Any]:
    return world.dump()[table]


def a_long_run(world: World) -> int:
    run_id = world.start_with_pages(TURNS + 1)
    for number in range(TURNS):
        world.turn("w", done(world.one(), saves=[a_save(str(number), {"n": number})]))
    return run_id


def test_counts_are_right_however_often_they_were_summed_up(world: World) -> None:
    run = world.run(a_long_run(world))

    assert (run.succeeded, run.queued, run.running) == (TURNS + 1, 1, 0)
    assert run.inserted == TURNS


def test_tallies_of_a_run_stay_few(world: World) -> None:
    a_long_run(world)

    # A turn adds a line for each stage it moves and one for what it saved, and sums up before it does.
    assert len(rows(world, "tally")) < SUM_AFTER + 2 * (STAGES + 1)


def test_no_row_of_a_run_is_written_again_while_it_goes_on(world: World) -> None:
    """Somebody's snapshot would keep all its versions, and each turn would read them all."""
    world.start_with_pages(TURNS + 2)
    world.turn("w", done(world.one()))
    before = rows(world, "run"), rows(world, "run_stage")

    for _ in range(TURNS):
        world.turn("w", done(world.one()))

    assert (rows(world, "run"), rows(world, "run_stage")) == before


def test_ended_run_has_its_counts_in_its_own_row_and_no_tallies(world: World) -> None:
    run_id = a_long_run(world)
    world.turn("w", done(world.one()))
    before = world.run(run_id)
    assert before.is_ended

    world.store.tidy()

    assert rows(world, "tally") == []
    assert world.run(run_id) == before


def test_run_that_goes_on_keeps_its_tallies(world: World) -> None:
    a_long_run(world)
    before = world.dump()

    world.store.tidy()

    assert world.dump() == before
