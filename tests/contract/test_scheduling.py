"""Schedules: each tick is decided once, whoever decides, and starts at most one run."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from penstock.engine.leader.scheduler import Scheduler
from penstock.jobs.job import JobState
from penstock.jobs.run import RunKind
from penstock.store.schedule_rows import Passing, Planned, Start
from tests.contract.scenes import SITE, Place, StoreKind
from tests.contract.schedule_bench import DAY_S, HOUR_S, MINUTE_S, Bench
from tests.tapped import Tapped

# One run for each tick.


def test_tick_starts_one_run_and_says_which(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h"})
    due_at = b.row().next_due_at
    assert due_at == b.world.clock.now() + HOUR_S
    assert b.tick() == due_at
    assert b.runs() == []

    b.tick(HOUR_S + 1)
    b.tick()

    [run] = b.runs()
    assert (run.actor, run.reason, run.kind) == ("scheduler", "every hour", RunKind.FULL)
    [tick] = b.ticks()
    assert (tick.due_at, tick.outcome, tick.run_id, tick.version) == (due_at, "fired", run.id, 1)
    assert (b.row().last_due_at, b.row().last_run_id) == (due_at, run.id)
    assert b.row().next_due_at == due_at + HOUR_S, "counted from the tick, not from now"


def test_intervals_keep_their_interval_however_late_they_are_looked_at(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "10m"})
    first = b.row().next_due_at or 0.0
    rng = random.Random(3)
    for _ in range(30):
        b.tick(rng.uniform(540, 659))
        b.finish()
    assert all((tick.due_at - first) % 600 == 0 for tick in b.ticks())


def test_source_has_several_schedules_with_kinds_of_their_own(
    bench: Callable[..., Bench],
) -> None:
    b = bench(
        [
            {"name": "often", "every": "1h", "kind": "incremental"},
            {"name": "weekly", "every": "7d", "kind": "full"},
        ]
    )
    [row] = b.world.store.sources.all()
    assert row.next_run_at == b.world.clock.now() + HOUR_S
    assert row.schedule == "every hour, incremental runs; every 7 days"

    b.go(7 * DAY_S + HOUR_S / 2, HOUR_S / 2)

    kinds = Counter(run.kind for run in b.runs())
    assert kinds[RunKind.INCREMENTAL] + b.outcomes(name="often")["joined"] == 7 * 24
    assert (kinds[RunKind.FULL], b.outcomes(name="weekly")) == (1, {"fired": 1})


def test_what_another_scheduler_starts_is_left_to_it_and_comes_back(
    bench: Callable[..., Bench],
) -> None:
    """Whatever only Penstock can start stays with it: hours, here."""
    hourly = [
        {"every": "1h"},
        {"name": "open", "cron": "30 * * * *", "windows": ["00:00-24:00"]},
    ]
    timed = bench(hourly)
    timed.top = {"timers": "external"}
    timed.write({"acme.com": {"schedule": hourly}})
    timed.go(5 * HOUR_S, 60.0)
    assert timed.ticks() == []
    assert timed.row().next_due_at is None
    assert timed.row().words == "every hour, started by another scheduler"
    assert timed.outcomes(name="open")["fired"] == 5

    timed.top = {}
    timed.write({"acme.com": {"schedule": hourly}})
    timed.go(5 * HOUR_S, 60.0)
    assert timed.outcomes()["fired"] == 5


def test_tick_of_a_schedule_that_was_changed_meanwhile_is_not_fired(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h"})
    b.world.clock.advance(HOUR_S)
    [stale] = b.world.store.schedules.due(b.world.clock.now())
    b.write({"acme.com": {"schedule": {"every": "2h"}}})

    start = Start(RunKind.FULL, SITE, "v1")
    passing = Passing(stale, None, fires=stale.due_at, start=start)
    assert b.world.store.schedules.pass_ticks(passing) is None
    assert b.runs() == []


def test_tick_that_has_its_row_is_never_fired_again(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h"})
    b.tick(HOUR_S)
    b.finish()
    fired = b.row().last_due_at
    again = Planned(b.world.source(), "main", '{"every":"60m"}', "every hour", "full", fired)
    b.world.store.schedules.plan([again])
    [due] = b.world.store.schedules.due(b.world.clock.now())
    assert (due.version, due.due_at) == (2, fired)

    start = Start(RunKind.FULL, SITE, "v1")
    next_due_at = due.due_at + HOUR_S
    done = b.world.store.schedules.pass_ticks(
        Passing(due, next_due_at, fires=due.due_at, start=start)
    )

    assert done is not None
    assert done.outcome == "known"
    assert len(b.runs()) == 1
    assert b.row().next_due_at == next_due_at


def test_four_schedulers_that_sleep_at_any_moment_fire_each_tick_once(
    bench: Callable[..., Bench], kind: StoreKind, place: Place
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    b = bench({"every": "1m"})
    stores = [kind.open(place, b.world.clock) for _ in range(4)]
    depth = 0

    def sleep(_: str) -> None:
        """Before each thing that a scheduler does."""
        nonlocal depth
        if depth < 3 and rng.random() < 0.2:
            depth += 1
            b.world.clock.advance(rng.choice([0.0, 0.0, 5.0, 61.0]))
            rng.choice(schedulers).tick()
            depth -= 1

    views: list[Any] = [Tapped(store, sleep) for store in stores]
    schedulers = [Scheduler(b.project, view) for view in views]
    began = b.world.clock.now()
    for _ in range(150):
        b.world.clock.advance(20)
        rng.choice(schedulers).tick()
        b.finish()
    for store in stores:
        store.close()
    b.tick()

    ticks = b.ticks()
    assert [tick.due_at for tick in ticks] == [
        began + MINUTE_S * (n + 1) for n in range(int((b.world.clock.now() - began) // MINUTE_S))
    ]
    fired = [tick.run_id for tick in ticks if tick.outcome == "fired"]
    assert fired == [run.id for run in b.runs()]
    assert len(fired) > 30


def test_schedulers_in_threads_fire_each_tick_once(
    bench: Callable[..., Bench], kind: StoreKind, place: Place
) -> None:
    sources = {f"s{n}": {"schedule": {"every": "1m", "overlap": "replace"}} for n in range(5)}
    b = bench(**sources)
    rounds = 12
    barrier = threading.Barrier(4)
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with closing(kind.open(place, b.world.clock)) as store:
                scheduler = Scheduler(b.project, store)
                for _ in range(rounds):
                    if barrier.wait(60) == 0:
                        b.world.clock.advance(MINUTE_S)
                    barrier.wait(60)
                    scheduler.tick()
        except BaseException as error:
            problems.append(error)
            barrier.abort()
            raise

    b.project.graph(b.project.source("s0"))
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert problems == []
    assert len(b.runs()) == rounds * 5
    for source in sources:
        assert b.outcomes(source) == {"fired": rounds}
    while b.world.store.runs.sweep_cancelled():
        pass


def test_scheduler_that_is_no_longer_trusted_stops_between_two_ticks(
    bench: Callable[..., Bench],
) -> None:
    b = bench(**{f"s{n}": {"schedule": {"every": "1h"}} for n in range(5)})
    b.world.clock.advance(HOUR_S)
    left = iter([True, True, True, False])
    b.scheduler.tick(lambda: next(left, False))
    assert len(b.runs()) == 2
    b.tick()
    assert len(b.runs()) == 5


# Overlap.


def test_overlap_skips_and_does_not_move_the_last_run(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h"})
    b.tick(HOUR_S)
    before = b.row()
    b.tick(HOUR_S)
    after = b.row()

    assert b.outcomes() == {"fired": 1, "skipped": 1}
    assert b.ticks()[-1].reason == f"run {before.last_run_id} has not ended yet"
    assert (after.last_run_id, after.last_due_at) == (before.last_run_id, before.last_due_at)
    assert "schedule.skipped" in b.world.kinds()

    b.finish()
    b.tick(HOUR_S)
    run = b.runs()[-1]
    assert run.options.start_at == before.last_due_at, "what was skipped is in its window"


def test_overlap_queue_waits_for_the_run_before_it_and_is_joined_by_later_ticks(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h", "overlap": "queue"})
    b.tick(HOUR_S)
    for _ in range(300):
        b.tick(30)
    assert len(b.runs()) == 1
    assert b.outcomes() == {"fired": 1}

    b.finish()
    b.tick(30)

    assert len(b.runs()) == 2
    assert [tick.outcome for tick in b.ticks()] == ["fired", "fired", "joined"]
    second = b.runs()[-1]
    assert (second.options.end_at or 0) - (second.options.start_at or 0) == 2 * HOUR_S
    assert b.ticks()[-1].run_id == second.id


@pytest.mark.parametrize("kind_of_run", list(RunKind))
def test_full_tick_is_skipped_for_a_full_run_waits_for_a_weaker_one_and_passes_others(
    bench: Callable[..., Bench], kind_of_run: RunKind
) -> None:
    b = bench({"every": "1h"})
    b.world.start(kind=kind_of_run)
    b.tick(HOUR_S)

    waits = kind_of_run in (RunKind.INCREMENTAL, RunKind.PROBE)
    decided = "skipped" if kind_of_run is RunKind.FULL else "fired"
    assert b.outcomes() == ({} if waits else {decided: 1})


def test_draft_holds_no_schedule_up(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h"})
    b.world.start(is_draft=True)
    b.tick(HOUR_S)

    assert b.outcomes() == {"fired": 1}


def test_overlap_replace_cancels_the_run_that_has_not_ended(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h", "overlap": "replace"})
    b.tick(HOUR_S)
    [job] = b.world.claim()
    b.tick(HOUR_S)

    first, second = b.runs()
    assert (first.state, second.state) == ("cancelled", "queued")
    assert b.world.job(job.id).state is JobState.CANCELLED
    assert b.outcomes() == {"fired": 2}
    [told] = [e for e in b.world.store.journal.events() if e.kind == "schedule.replaced"]
    assert told.detail == f"main: run {first.id} had not ended"
    while b.world.store.runs.sweep_cancelled():
        pass


def test_overlap_replace_cancels_all_runs_that_hold_it_up(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h", "overlap": "replace"})
    for key in ("by ann", "by bob"):
        b.world.start(key=key)
    b.tick(HOUR_S)

    assert [run.state for run in b.runs()] == ["cancelled", "cancelled", "queued"]
    told = [e for e in b.world.store.journal.events() if e.kind == "schedule.replaced"]
    assert len(told) == 2
    while b.world.store.runs.sweep_cancelled():
        pass


def test_scheduler_that_read_a_tick_before_another_fired_it_replaces_nothing(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h", "overlap": "replace"})
    b.world.clock.advance(HOUR_S)
    [stale] = b.world.store.schedules.due(b.world.clock.now())
    b.tick()
    start = Start(RunKind.FULL, SITE, "v1")
    passing = Passing(stale, None, fires=stale.due_at, start=start, overlap="replace")
    assert b.world.store.schedules.pass_ticks(passing) is None
    assert [run.state for run in b.runs()] == ["queued"]


# Hours.


def test_tick_outside_of_its_hours_is_denied_and_says_when_the_next_slot_is(
    bench: Callable[..., Bench],
) -> None:
    # The world begins on Friday 2027-01-15, 08:00 UTC.
    b = bench({"every": "1h", "windows": ["10:00-12:00"], "blackouts": ["fri 11:00-24:00"]})
    b.go(24 * HOUR_S, HOUR_S / 2)

    fired = [(tick.due_at / HOUR_S) % 24 for tick in b.ticks() if tick.outcome == "fired"]
    assert fired == [10.0], "eleven is in the blackout"
    denied = [tick for tick in b.ticks() if tick.outcome == "denied"]
    assert len(denied) == 23
    assert denied[0].reason == "outside its hours; the next slot is 2027-01-15 10:00 UTC"
    assert denied[-1].reason == "outside its hours; the next slot is 2027-01-16 10:00 UTC"
    assert b.row().last_run_id == b.runs()[-1].id


# Clocks.


@pytest.mark.parametrize("schedule", [{"every": "10m"}, {"cron": "*/10 * * * *"}])
def test_clock_that_is_set_back_an_hour_doubles_and_loses_nothing(
    bench: Callable[..., Bench], schedule: dict[str, str]
) -> None:
    b = bench(schedule)
    began = b.world.clock.now()
    b.go(3 * HOUR_S, 60)
    b.world.clock._epoch -= HOUR_S
    b.go(3 * HOUR_S, 60)

    due = [tick.due_at for tick in b.ticks()]
    assert due == [began + 600 * (n + 1) for n in range(5 * 6)]
    assert b.outcomes() == {"fired": 30}
    assert len(b.runs()) == 30


@pytest.mark.parametrize("schedule", [{"every": "10m"}, {"cron": "*/10 * * * *"}])
def test_clock_that_is_set_forward_an_hour_and_back_doubles_and_loses_nothing(
    bench: Callable[..., Bench], schedule: dict[str, str]
) -> None:
    b = bench(schedule)
    began = b.world.clock.now()
    for _ in range(5):
        b.go(HOUR_S, 60)
        b.world.clock._epoch += HOUR_S
        b.go(HOUR_S, 60)
        b.world.clock._epoch -= HOUR_S
    b.go(HOUR_S, 60)

    ticks = b.ticks()
    assert [tick.due_at for tick in ticks] == [began + 600 * (n + 1) for n in range(len(ticks))]
    assert len(ticks) >= 60
    assert [tick.run_id for tick in ticks if tick.outcome == "fired"] == [r.id for r in b.runs()]
