"""Announced moments: written with the attempt that announces them, and what is due earlier for them is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.effects import Effects
from penstock.store.announcements import MOST, Announcement, Sooner
from penstock.store.upkeep import Keep
from tests.contract.scenes import World, done
from tests.contract.schedule_bench import Bench

DAY_S = 86_400.0
NEAR = {"every": "60s", "near": {"window": "10m", "every": "5s"}}


@pytest.fixture
def bench(world: World, tmp_path: Path) -> Callable[..., Bench]:
    def make(schedule: Any = NEAR) -> Bench:
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        return Bench(world, folder, {"acme.com": {"schedule": schedule}})

    return make


def announce(b: Bench, moments: Sequence[float]) -> None:
    """Have the run that is due announce these."""
    [job] = b.world.claim()
    b.world.turn("w", done(job, effects=Effects(moments=list(moments))))


def test_moment_is_known_once_its_attempt_has_ended_and_only_once(
    bench: Callable[..., Bench],
) -> None:
    b = bench()
    store, source_id = b.world.store, b.world.source("acme.com")
    at = b.world.clock.now() + 5000.0
    b.tick(60.0)
    assert store.announcements.of(source_id) == []
    announce(b, [at + 1.5, at])
    b.tick(60.0)
    announce(b, [at, at - 10 * DAY_S])

    assert store.announcements.of(source_id) == [at, at + 1.5], "what is long over says nothing"


def test_announced_moment_brings_the_next_tick_forward(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h", "near": {"window": "10m", "every": "5s"}})
    b.tick(3600.0)
    fired_at = b.world.clock.now()
    assert b.row().next_due_at == fired_at + 3600.0

    announce(b, [fired_at + 1200.0])
    b.tick(1.0)
    assert b.row().next_due_at == fired_at + 600.0, "the window begins"
    assert b.world.store.announcements.open() == []

    b.tick(599.0)
    b.finish()
    assert b.row().next_due_at == fired_at + 605.0
    assert b.outcomes() == {"fired": 2}


def test_window_that_is_open_already_is_heard_of_at_once(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h", "near": {"window": "10m", "every": "5s"}})
    b.tick(3600.0)
    now = b.world.clock.now()
    announce(b, [now + 60.0])
    b.tick(1.0)
    assert b.row().next_due_at == now + 6.0
    b.tick(1.0)
    assert b.row().next_due_at == now + 6.0, "and is not put off by looking again"


def test_each_tick_near_a_moment_starts_one_run(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.tick(60.0)
    at = b.world.clock.now() + 900.0
    announce(b, [at])
    b.go(1800.0, 2.5)

    ticks = [tick.due_at for tick in b.ticks()]
    assert b.outcomes() == {"fired": len(ticks)}
    assert len({tick.run_id for tick in b.ticks()}) == len(ticks)
    for before, after in pairwise(ticks):
        is_near = at - 600.0 <= before <= at + 600.0 - 5.0
        assert after - before <= (5.0 if is_near else 60.0)
    assert not any(at + 600.0 < tick < at + 660.0 for tick in ticks), "none after the window"
    assert at - 600.0 in ticks


def test_schedule_that_is_due_earlier_by_now_or_is_another_one_is_left_alone(
    bench: Callable[..., Bench],
) -> None:
    b = bench()
    row = b.row()
    due_at = row.next_due_at or 0.0
    store = b.world.store
    assert (
        store.announcements.bring_forward(
            [], [Sooner(row.source_id, row.name, row.version, due_at + 1)]
        )
        == 0
    )
    assert (
        store.announcements.bring_forward([], [Sooner(row.source_id, row.name, 99, due_at - 1)])
        == 0
    )
    assert b.row().next_due_at == due_at
    assert (
        store.announcements.bring_forward(
            [], [Sooner(row.source_id, row.name, row.version, due_at - 1)]
        )
        == 1
    )
    assert (b.row().next_due_at, b.row().look_at) == (due_at - 1, due_at - 1)


def test_moment_announced_again_after_it_was_heard_is_not_heard_again(
    bench: Callable[..., Bench],
) -> None:
    b = bench()
    at = b.world.clock.now() + 5000.0
    b.tick(60.0)
    announce(b, [at])
    assert b.world.store.announcements.open() == [Announcement(b.world.source("acme.com"), at)]
    b.tick(60.0)
    announce(b, [at])
    assert b.world.store.announcements.open() == []


def test_source_has_so_many_moments_at_most_and_known_ones_take_no_place(
    bench: Callable[..., Bench],
) -> None:
    b = bench()
    source_id = b.world.source("acme.com")
    first = b.world.clock.now() + 5000.0
    many = [first + n for n in range(MOST - 1)]
    b.tick(60.0)
    announce(b, many)
    b.tick(60.0)
    announce(b, [*many, first + MOST + 1, first + MOST])
    assert b.world.store.announcements.of(source_id) == [*many, first + MOST], (
        "the soonest are kept"
    )


def test_moments_are_forgotten_a_day_after_they_are_over(bench: Callable[..., Bench]) -> None:
    b = bench()
    source_id = b.world.source("acme.com")
    now = b.world.clock.now()
    b.tick(60.0)
    announce(b, [now + 100.0, now + 5000.0])
    b.world.clock.advance(DAY_S + 60.0)
    while b.world.store.upkeep.prune(Keep(None, None, None, None)):
        pass
    assert b.world.store.announcements.of(source_id) == [now + 5000.0]


def test_ticks_near_a_moment_that_nobody_was_there_for_are_missed_when_the_schedule_changes(
    bench: Callable[..., Bench],
) -> None:
    b = bench()
    b.tick(60.0)
    announce(b, [b.world.clock.now() + 640.0])
    b.tick(1.0)
    b.world.clock.advance(60.0 + 99.0)
    b.write({"acme.com": {"schedule": {"every": "2h"}}})
    missed = [tick.due_at for tick in b.ticks() if tick.outcome == "missed"]
    gaps = {round(after - before, 3) for before, after in pairwise(missed)}
    assert gaps == {5.0}
    assert len(missed) == 25
