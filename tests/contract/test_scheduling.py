"""Schedules: each tick is decided once, whoever decides, and nothing that was due is forgotten."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from penstock.engine.leader.scheduler import Scheduler
from penstock.engine.leader.sla import SlaChore
from penstock.jobs.job import JobState
from penstock.jobs.run import RunKind
from penstock.project import Project
from penstock.store.queries import queries
from penstock.store.schedule_rows import Passing, Planned, ScheduleRow, Start, TickRow
from penstock.store.upkeep import Keep
from tests.contract.scenes import PLAIN_STEPS, SITE, Place, StoreKind, World, done
from tests.tapped import Tapped

MINUTE_S = 60.0
HOUR_S = 3600.0
DAY_S = 86_400.0


class Bench:
    """A project's scheduler over the store of the contract."""

    def __init__(self, world: World, folder: Path, sources: dict[str, dict[str, Any]]) -> None:
        self.world, self.folder = world, folder
        self.top: dict[str, Any] = {}
        self.write(sources)

    def write(self, sources: dict[str, dict[str, Any]]) -> None:
        """Another configuration, and a scheduler that has read it."""
        written = {key: {"pipeline": "steps:plain", **more} for key, more in sources.items()}
        (self.folder / "penstock.yaml").write_text(
            json.dumps({"project": "timed", "sources": written, **self.top})
        )
        (self.folder / "steps.py").write_text(PLAIN_STEPS)
        self.project = Project.open(self.folder)
        self.project.clock = self.world.clock
        self.scheduler = Scheduler(self.project, self.world.store)
        self.changed = self.scheduler.plan()

    def tick(self, after_s: float = 0.0) -> float | None:
        self.world.clock.advance(after_s)
        return self.scheduler.tick()

    def go(self, for_s: float, step_s: float) -> None:
        """Look every so often, and end every run at once."""
        for _ in range(round(for_s / step_s)):
            self.tick(step_s)
            self.finish()

    def finish(self) -> None:
        for job in self.world.claim():
            self.world.turn("w", done(job))

    def row(self, source: str = "acme.com", name: str = "main") -> ScheduleRow:
        rows = self.world.store.schedules.all(self.world.source(source))
        return next(row for row in rows if row.name == name)

    def ticks(self, source: str = "acme.com", name: str = "main") -> list[TickRow]:
        """The oldest first."""
        return self.world.store.schedules.ticks(self.world.source(source), name, 1_000_000)[::-1]

    def outcomes(self, source: str = "acme.com", name: str = "main") -> Counter[str]:
        return Counter(tick.outcome for tick in self.ticks(source, name))

    def runs(self) -> list[Any]:
        return self.world.store.runs.newest(limit=1_000_000)[::-1]


@pytest.fixture
def bench(world: World, tmp_path: Path) -> Callable[..., Bench]:
    def make(schedule: Any = None, **sources: Any) -> Bench:
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        wanted = {"acme.com": {"schedule": schedule}} if schedule else {}
        return Bench(world, folder, {**wanted, **sources})

    return make


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

    b.go(7 * DAY_S + 1, HOUR_S / 4)

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


# Missed ticks.


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


# Versions.


def test_unchanged_schedule_keeps_its_next_tick_and_a_changed_one_is_planned_anew(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h"})
    due_at = b.row().next_due_at
    b.world.clock.advance(600)
    b.write({"acme.com": {"schedule": {"every": "60m"}}})
    assert (b.changed, b.row().next_due_at, b.row().version) == (0, due_at, 1)

    b.write({"acme.com": {"schedule": {"every": "2h"}}})

    assert (b.changed, b.row().version) == (1, 2)
    assert b.row().next_due_at == b.world.clock.now() + 2 * HOUR_S
    versions = b.world.store.schedules.versions(b.world.source())
    assert [(each.version, each.words) for each in versions] == [
        (1, "every hour"),
        (2, "every 2 hours"),
    ]


def test_ticks_that_were_due_by_a_definition_that_is_replaced_are_not_forgotten(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h"})
    b.world.clock.advance(3 * HOUR_S + 60)
    b.write({"acme.com": {"schedule": {"every": "2h"}}})

    assert b.outcomes() == {"missed": 3}
    assert {tick.reason for tick in b.ticks()} == {"the schedule was changed"}
    assert {tick.version for tick in b.ticks()} == {1}
    assert "schedule.missed" in b.world.kinds()


def test_what_was_due_while_nobody_was_there_is_still_due_after_a_restart(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h"})
    b.world.clock.advance(3 * HOUR_S + 60)
    b.write({"acme.com": {"schedule": {"every": "1h"}}})
    assert b.ticks() == []
    b.tick()
    assert b.outcomes() == {"missed": 2, "fired": 1}


def test_scheduler_with_another_configuration_leaves_a_tick_to_others(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h"})
    former = b.scheduler
    b.write({"acme.com": {"schedule": {"every": "2h", "kind": "incremental"}}})
    b.world.clock.advance(2 * HOUR_S)
    former.tick()
    assert b.runs() == []
    b.tick()
    assert [run.kind for run in b.runs()] == [RunKind.INCREMENTAL]


def test_history_says_which_version_fired(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h"})
    b.go(3 * HOUR_S, 600)
    b.write({"acme.com": {"schedule": {"every": "2h"}}})
    b.go(4 * HOUR_S, 600)

    assert [tick.version for tick in b.ticks()] == [1, 1, 1, 2, 2]
    counts = b.world.store.schedules.tick_counts(b.world.source())
    assert [(each.version, each.outcome, each.ticks) for each in counts] == [
        (1, "fired", 3),
        (2, "fired", 2),
    ]


def test_schedule_that_is_taken_out_is_due_no_more_and_comes_back_as_the_next_version(
    bench: Callable[..., Bench],
) -> None:
    b = bench({"every": "1h"})
    b.write({"acme.com": {}})
    assert b.world.store.schedules.all() == []
    assert b.tick(HOUR_S) is None
    assert b.runs() == []
    assert b.world.store.sources.all()[0].next_run_at is None

    b.write({"acme.com": {"schedule": {"every": "1h"}}})
    assert b.row().version == 3
    removed = b.world.store.schedules.versions(b.world.source())[1]
    assert (removed.definition, removed.words) == ("", "removed")


def test_planning_what_is_planned_writes_nothing(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h"})
    before = b.world.dump()
    assert b.scheduler.plan() == 0
    assert b.world.dump() == before


# Ten thousand of them.


def test_idle_look_asks_one_question_and_a_look_reads_only_what_is_due(
    world: World, kind: StoreKind, tmp_path: Path
) -> None:
    keys = [f"source{n}" for n in range(100)]
    ids, now = world.store.sources.ensure(keys), world.clock.now()
    count = 10_000
    world.store.schedules.plan(
        [
            Planned(ids[keys[n % 100]], f"s{n:05}", "{}", "every day", "every", now + 10 + n)
            for n in range(count)
        ]
    )
    asked: list[str] = []

    view: Any = Tapped(world.store, asked.append)
    (tmp_path / "penstock.yaml").write_text("project: bare\nsources: {}\n")
    project = Project.open(tmp_path)
    scheduler = Scheduler(project, view)
    assert scheduler.tick() == now + 10
    assert asked == ["now", "schedules.next_look_at"]

    world.clock.advance(12)
    assert [row.name for row in world.store.schedules.due(world.clock.now())] == [
        "s00000", "s00001", "s00002",
    ]  # fmt: skip
    plans = _plans(world, kind, "due_schedules", "next_look_at")
    assert all("schedule_due" in plan for plan in plans), plans
    bound = "Index Cond: (look_at <=" if kind.is_shared else "schedule_due (look_at<?)"
    assert bound in plans[0], "from where what is due begins to where it ends"


def _plans(world: World, kind: StoreKind, *names: str) -> list[str]:
    if not kind.is_shared:
        known = queries("penstock.store.sqlite")
        with closing(apsw.Connection(str(world.path))) as connection:
            return [
                " ".join(
                    str(row[3])
                    for row in connection.execute(
                        f"EXPLAIN QUERY PLAN {known[name]}", {"now": 1.0, "limit": 10}
                    )
                )
                for name in names
            ]
    known = queries("penstock.store.postgres")
    factory = psycopg.ClientCursor[tuple[Any, ...]]
    with psycopg.connect(str(world.path), autocommit=True, cursor_factory=factory) as connection:
        return [
            " ".join(
                row[0]
                for row in connection.execute(
                    f"EXPLAIN {known[name]}".encode(), {"now": 1.0, "limit": 10}
                )
            )
            for name in names
        ]


# Retention.


def test_ticks_are_kept_as_long_as_events(bench: Callable[..., Bench]) -> None:
    b = bench({"every": "1h"})
    b.go(10 * HOUR_S, HOUR_S)
    keep = Keep(None, 5.5 * HOUR_S, None, None)
    while b.world.store.upkeep.prune(keep):
        pass
    assert len(b.ticks()) == 6


# Promises.


def promising(b: Bench) -> SlaChore:
    return SlaChore(b.project, b.world.store)


def told(b: Bench) -> list[tuple[str, str]]:
    return [
        (event.kind, event.detail)
        for event in b.world.store.journal.events(limit=100_000)
        if event.kind.startswith("sla.")
    ]


def raised(b: Bench) -> list[Any]:
    return [each for each in b.world.store.signals.after() if each.name.startswith("sla.")]


def test_source_without_a_good_run_breaks_its_promise_once_and_a_good_run_ends_that(
    bench: Callable[..., Bench],
) -> None:
    b = bench(**{"acme.com": {"freshness": "26h"}})
    promises = promising(b)
    promises.look()
    assert told(b) == []
    for _ in range(5):
        b.world.clock.advance(7 * HOUR_S)
        promises.look()
    assert told(b) == [("sla.breached", "freshness: no good run for longer than 26 h")]
    [breach] = b.world.store.promises.breaches(open_only=True)
    assert (breach.rule, breach.ended_at) == ("freshness", None)

    b.world.store.runs.cancel(b.world.start(key="cancelled"), "test", "")
    while b.world.store.runs.sweep_cancelled():
        pass
    b.world.clock.advance(60)
    promises.look()
    assert len(told(b)) == 1, "a cancelled run is no good one"

    b.project.clock = b.world.clock
    b.world.store.runs.start(
        b.world.source(),
        RunKind.FULL,
        b.project.graph(b.project.source("acme.com")).plan(5, RunKind.FULL),
        "v1",
        key="good",
        actor="test",
    )
    b.finish()
    b.world.clock.advance(60)
    promises.look()
    assert [kind for kind, _ in told(b)] == ["sla.breached", "sla.restored"]
    assert b.world.store.promises.breaches(open_only=True) == []
    assert [signal.name for signal in raised(b)] == ["sla.breached", "sla.restored"]

    b.world.clock.advance(27 * HOUR_S)
    promises.look()
    assert [kind for kind, _ in told(b)][2:] == ["sla.breached"], "and again, each time"


def test_run_that_takes_too_long_breaks_its_deadline_until_it_ends(
    bench: Callable[..., Bench],
) -> None:
    b = bench(**{"acme.com": {"deadline": "2h"}})
    promises = promising(b)
    plan = b.project.graph(b.project.source("acme.com")).plan(5, RunKind.FULL)
    run_id, _ = b.world.store.runs.start(
        b.world.source(), RunKind.FULL, plan, "v1", key="slow", actor="test"
    )
    for _ in range(4):
        b.world.clock.advance(HOUR_S)
        promises.look()
    assert told(b) == [("sla.breached", f"deadline: run {run_id} takes longer than 2 h")]
    [signal] = raised(b)
    assert signal.data["run"] == signal.run_id == run_id

    b.finish()
    b.world.clock.advance(60)
    promises.look()
    assert [kind for kind, _ in told(b)] == ["sla.breached", "sla.restored"]


def test_two_who_watch_tell_of_a_broken_promise_once(bench: Callable[..., Bench]) -> None:
    b = bench(**{"acme.com": {"freshness": "1h"}})
    b.world.clock.advance(2 * HOUR_S)
    promising(b).look()
    promising(b).look()
    assert len(told(b)) == 1
    assert len(raised(b)) == 1


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
