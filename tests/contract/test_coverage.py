"""What was ingested is written with the attempt that did it."""

from __future__ import annotations

import pytest

from penstock.jobs.effects import Covered, Effects
from penstock.jobs.run import RunKind
from tests.contract.scenes import World, done, pages

DAY = 86_400.0


def covering(world: World, *covered: Covered, kind: RunKind = RunKind.FULL) -> int:
    run_id = world.start(key=f"run-{world.store.now()}-{kind}", kind=kind)
    world.turn("w", done(world.one(), effects=Effects(covered=list(covered))))
    world.clock.advance(1)
    return run_id


def test_what_an_attempt_ingested_is_covered_by_its_run(world: World) -> None:
    run_id = covering(world, Covered("b", 0, DAY), Covered("a", DAY, 2 * DAY), Covered("a", 0, DAY))

    found = world.store.sources.covered(world.source(), ["a", "b"], 0, 10 * DAY)

    assert [(c.partition, c.start_at, c.end_at) for c in found] == [
        ("a", 0, DAY), ("a", DAY, 2 * DAY), ("b", 0, DAY),
    ]  # fmt: skip
    assert {c.run_id for c in found} == {run_id}
    assert world.store.sources.covered(world.source("other.org"), ["a"], 0, 10 * DAY) == []


def test_only_what_touches_the_wanted_stretch_is_answered(world: World) -> None:
    covering(
        world, Covered("a", 0, DAY), Covered("a", DAY, 2 * DAY), Covered("a", 3 * DAY, 4 * DAY)
    )

    found = world.store.sources.covered(world.source(), ["a"], DAY, 3 * DAY)

    assert [c.start_at for c in found] == [DAY]


def test_stretch_that_is_ingested_again_stays_with_the_first_run(world: World) -> None:
    first = covering(world, Covered("a", 0, DAY))
    covering(world, Covered("a", 0, DAY), kind=RunKind.BACKFILL)

    [row] = world.store.sources.covered(world.source(), ["a"], 0, DAY)

    assert row.run_id == first


def test_what_a_run_has_ingested_that_is_undone_is_missing_again(world: World) -> None:
    first = covering(world, Covered("a", 0, DAY))
    second = covering(world, Covered("a", 0, DAY), Covered("a", DAY, 2 * DAY))

    world.store.undos.begin(second, "ann", "")
    assert [c.start_at for c in world.store.sources.covered(world.source(), ["a"], 0, 9 * DAY)] == [
        0
    ]
    world.store.undos.begin(first, "ann", "")
    assert world.store.sources.covered(world.source(), ["a"], 0, 9 * DAY) == []


@pytest.mark.parametrize("kind_of_run", [RunKind.PROBE, RunKind.REPLAY])
def test_run_that_ingests_nothing_covers_nothing(world: World, kind_of_run: RunKind) -> None:
    covering(world, Covered("a", 0, DAY), kind=kind_of_run)

    assert world.store.sources.covered(world.source(), ["a"], 0, DAY) == []


def test_late_attempt_covers_nothing(world: World) -> None:
    world.start()
    job = world.one()
    world.store.workers.bury("w", "gone")

    world.turn("w", done(job, effects=Effects(covered=[Covered("a", 0, DAY)])))

    assert world.store.sources.covered(world.source(), ["a"], 0, DAY) == []


def test_backlog_is_counted_without_the_job_that_plans(world: World) -> None:
    run_id = world.start()
    root = world.one()
    assert world.store.runs.backlog(run_id, "discover") == (0, 0)

    world.turn("w", done(root, children=pages(3)))
    page, *_ = world.claim()
    world.turn("w", done(page))

    assert world.store.runs.backlog(run_id, "discover") == (2, 1)


def test_window_that_has_not_ended_is_covered_until_now_and_has_one_row(world: World) -> None:
    began = world.clock.now()
    today = Covered("a", began - 100, began + 1000)
    covering(world, today)
    covering(world, Covered("a", began + 500, began + 600))
    world.clock.advance(50)
    covering(world, today)

    [row] = world.store.sources.covered(world.source(), ["a"], 0, began + 9999)
    assert (row.start_at, row.end_at) == (began - 100, began + 52)

    world.clock.advance(5000)
    covering(world, today)
    assert (
        world.store.sources.covered(world.source(), ["a"], 0, began + 9999)[-1].end_at
        == began + 1000
    )
