"""Ticks that nobody was there for, and ticks that are due together: none is forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from penstock.jobs.run import RunKind
from tests.contract.scenes import StoreKind
from tests.contract.schedule_bench import DAY_S, HOUR_S, MINUTE_S, Bench


def test_seven_days_of_a_minute_cron_are_one_run_and_every_miss_is_recorded(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"cron": "* * * * *"})
    b.tick(MINUTE_S)
    b.finish()
    [first] = b.runs()
    before = b.row().last_due_at

    b.tick(7 * DAY_S)

    assert b.outcomes() == {"fired": 2, "missed": 10_079}
    run = b.runs()[-1]
    assert len(b.runs()) == 2
    assert run.options.start_at == before
    assert run.options.end_at == b.row().last_due_at
    assert "covers 10,079 missed ticks" in run.reason
    assert {tick.run_id for tick in b.ticks() if tick.outcome == "missed"} == {run.id}
    told = [event for event in b.world.store.journal.events() if event.kind == "schedule.missed"]
    assert [event.detail for event in told] == ["main: 10,079 ticks missed"]
    [signal] = [each for each in b.world.store.signals.after() if each.name == "schedule.missed"]
    assert (signal.data["ticks"], signal.data["schedule"]) == (10_079, "main")
    assert first.id != run.id


def test_more_ticks_than_one_batch_holds_are_all_recorded(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1s"})
    b.tick(45_000)
    assert b.outcomes() == {"missed": 44_999, "fired": 1}
    assert len(b.runs()) == 1


def test_missed_skip_starts_nothing_for_what_is_past(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h", "missed": "skip"})
    b.tick(10 * HOUR_S + 600)
    assert b.outcomes() == {"missed": 10}
    assert b.runs() == []
    assert b.row().last_run_id is None

    b.tick(3000)
    assert b.outcomes() == {"missed": 10, "fired": 1}


def test_missed_all_makes_up_for_each_one_after_the_other(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h", "missed": "all", "catch_up": 5})
    b.tick(12 * HOUR_S + 600)
    assert len(b.runs()) == 1, "the next waits for it to end"

    b.go(20 * MINUTE_S, 1.0)

    ticks = b.ticks()[:12]
    assert [tick.outcome for tick in ticks] == ["fired"] * 12
    assert [run.options.end_at for run in b.runs()[:12]] == [tick.due_at for tick in ticks]
    assert [run.options.start_at for run in b.runs()[1:12]] == [t.due_at for t in ticks[:11]]
    assert {tick.reason for tick in ticks} == {"catching up on a missed tick"}
    missed = [each for each in b.world.store.signals.after() if each.name == "schedule.missed"]
    assert [each.data["first_at"] for each in missed] == [tick.due_at for tick in ticks]
    assert [each.run_id for each in missed] == [tick.run_id for tick in ticks]


def test_catching_up_of_many_stays_under_its_rate_and_others_are_on_time(
    bench: Callable[..., Bench], kind: StoreKind
) -> None:
    count = 200 if not kind.is_shared else 60
    late = {
        f"late{n}": {"schedule": {"every": "12h", "missed": "all", "catch_up": 30}}
        for n in range(count)
    }
    b = bench(**late, prompt={"schedule": {"every": "1m"}})
    b.world.clock.advance(7 * DAY_S + 600)
    began = b.world.clock.now()
    for _ in range(30):
        b.tick(10)
        b.finish()

    started = [run for run in b.runs() if run.source.startswith("late")]
    times = sorted(run.created_at for run in started)
    for at in times:
        assert sum(at - 60 < other <= at for other in times) <= 30
    assert len(times) >= 30 * 4, "and it does go on"
    assert max(Counter(run.source for run in started).values()) <= 3, "the oldest first"
    prompt = [t for t in b.ticks("prompt") if t.due_at > began]
    assert len(prompt) == 5
    assert all(tick.outcome == "fired" and tick.at - tick.due_at <= 10 for tick in prompt)


# Late, and two at once.


def missed_signals(b: Bench) -> list[dict[str, Any]]:
    return [row.data for row in b.world.store.signals.newest("schedule.missed")]


def test_one_tick_that_nobody_was_there_for_is_a_miss_and_starts_a_late_run(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1d"})

    b.tick(DAY_S + 21 * HOUR_S)

    [tick] = b.ticks()
    assert (tick.outcome, tick.reason) == ("fired", "catching up on a missed tick")
    [count] = b.world.store.schedules.tick_counts(b.world.source())
    assert (count.outcome, count.ticks, count.missed) == ("fired", 1, 1)
    [event] = b.world.store.journal.events(kind="schedule.missed", limit=10)
    assert event.detail == "main: 1 tick missed"
    [data] = missed_signals(b)
    assert (data["ticks"], data["run"]) == (1, b.runs()[0].id)


def test_as_many_misses_are_recorded_as_ticks_were_missed(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h"})

    b.tick(5 * HOUR_S + 30 * MINUTE_S)

    assert b.outcomes() == {"missed": 4, "fired": 1}
    assert sum(each.missed for each in b.world.store.schedules.tick_counts(b.world.source())) == 5
    assert [data["ticks"] for data in missed_signals(b)] == [5]
    assert b.ticks()[-1].reason == "covers 5 missed ticks"


@pytest.mark.parametrize("names", [("daily", "sunday"), ("sunday", "daily")])
def test_of_two_schedules_that_were_missed_the_full_run_starts_and_the_other_joins_it(
    bench: Callable[..., Bench], names: tuple[str, str]
) -> None:
    daily, weekly = names
    b = bench(
        [
            {"name": daily, "every": "1d", "kind": "incremental"},
            {"name": weekly, "every": "7d", "kind": "full"},
        ]
    )

    b.tick(8 * DAY_S + HOUR_S)

    [run] = b.runs()
    assert run.kind is RunKind.FULL
    assert b.outcomes(name=weekly) == {"fired": 1}
    [*before, last] = b.ticks(name=daily)
    assert (last.outcome, last.run_id) == ("joined", run.id)
    assert {tick.outcome for tick in before} == {"missed"}


def test_of_two_schedules_due_at_the_same_moment_both_are_answered_for(
    bench: Callable[..., Bench],
) -> None:
    b = bench(
        [
            {"name": "a", "every": "1h", "kind": "incremental"},
            {"name": "b", "every": "1h", "kind": "full", "overlap": "replace"},
            {"name": "c", "every": "1h", "kind": "incremental", "overlap": "replace"},
        ]
    )

    b.tick(HOUR_S)

    [run] = b.runs()
    assert run.kind is RunKind.FULL
    assert b.outcomes(name="b") == {"fired": 1}
    assert b.outcomes(name="a") == b.outcomes(name="c") == {"joined": 1}


def test_full_tick_waits_for_an_incremental_run_instead_of_being_skipped(
    bench: Callable[..., Bench],
) -> None:
    b = bench(
        [
            {"name": "often", "every": "1h", "kind": "incremental"},
            {"name": "weekly", "every": "90m", "kind": "full"},
        ]
    )
    b.tick(HOUR_S)

    b.tick(30 * MINUTE_S)
    assert [run.kind for run in b.runs()] == [RunKind.INCREMENTAL]
    b.finish()
    b.tick(3.0)

    assert [run.kind for run in b.runs()] == [RunKind.INCREMENTAL, RunKind.FULL]
    assert b.outcomes(name="weekly") == {"fired": 1}


def test_missed_all_loses_no_tick_that_came_while_nobody_led_for_some_seconds(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "2s", "missed": "all", "catch_up": 1000})
    b.tick(2.0)

    b.tick(20.0)
    for _ in range(60):
        b.finish()
        b.tick(0.5)

    assert set(b.outcomes()) == {"fired"}
    assert b.outcomes()["fired"] >= 11


def test_ticks_that_wait_to_be_made_up_for_are_known_to_be_due(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h", "missed": "all", "catch_up": 1})

    b.tick(3 * HOUR_S + MINUTE_S)
    b.finish()
    b.tick()
    assert b.world.store.schedules.has_overdue_ticks()

    b.go(10 * MINUTE_S, 10.0)
    assert not b.world.store.schedules.has_overdue_ticks()
    assert b.outcomes() == {"fired": 3}
