"""Claims: never before due, by rank within a lane, fairly among lanes, never more than fits."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec import structs

from penstock.engine.foreground import nothing_left
from penstock.gates.capacity import Capacity
from penstock.gates.fair_shares import LAST, Stretch
from penstock.gates.lane import BreakerFacts, Head, Lane, LaneLimits
from penstock.gates.loaded import Loaded, LoadedSource
from penstock.jobs.job import AGEING_S
from penstock.jobs.run import Plan, PlannedStage
from penstock.store.turn.claim import with_ahead
from penstock.store.turn.turn import Turn
from tests.contract.scenes import WIDE, World, a_job, done, quarantined, retried, snoozed, throttled


def test_waiting_job_is_never_claimed_before_it_is_due(world: World) -> None:
    world.start_with_pages(1)
    job = world.one()
    due_at = world.clock.now() + 30
    assert world.turn("w", retried(job, 30)).next_due_at == due_at

    world.clock.advance(29.999)
    assert world.claim() == []
    world.clock.advance(0.001)

    assert [again.id for again in world.claim()] == [job.id]
    assert world.kinds(job.id) == ["job.started", "job.retry_scheduled", "job.due", "job.started"]


def test_job_that_is_due_does_not_wake_the_next_one(world: World) -> None:
    world.start_with_pages(2)
    one, two = world.claim()
    world.turn("w", retried(one, 30), retried(two, 30.5))

    world.clock.advance(30)

    assert [job.id for job in world.claim()] == [one.id]


def test_job_that_is_claimed_between_two_looks_is_not_taken_for_idleness(world: World) -> None:
    run_id = world.start_with_pages(1)
    source_id = world.source()
    known = Loaded("", {}, {source_id: LoadedSource("v1", ("discover", "extract", "persist"))})
    other = world.kind.open(world.path, world.clock)
    look = world.store.jobs.running_streams

    def look_and_be_overtaken() -> int:
        found = look()
        other.turn("w", [], Capacity(1), world.limits)
        return found

    world.store.jobs.running_streams = look_and_be_overtaken  # type: ignore[method-assign]
    assert not nothing_left(world.store, (), known)

    assert [job.state for job in world.jobs(run_id, stage="extract")] == ["running"]
    other.close()


def test_due_time_survives_a_restart(world: World) -> None:
    world.start_with_pages(1)
    job = world.one()
    world.turn("w", snoozed(job, 30))

    world.store.close()
    world.store = world.kind.open(world.path, world.clock)

    world.clock.advance(29)
    assert world.claim() == []
    world.clock.advance(1)
    assert world.one().id == job.id


def test_many_due_at_once_are_all_woken(world: World) -> None:
    world.start_with_pages(2500)
    world.turn("w", *(retried(job, 10) for job in world.claim(slots=3000)))
    world.clock.advance(10)

    claimed = []
    next_due_at: float | None = world.clock.now()
    while next_due_at is not None:
        assert next_due_at <= world.clock.now(), "what is left is due already"
        turn = world.turn("w", capacity=Capacity(10_000))
        claimed += turn.claimed
        next_due_at = turn.next_due_at

    assert len(claimed) == 2500


def test_lower_number_starts_sooner_and_equal_ones_in_order(world: World) -> None:
    run_id = world.start()
    jobs = [a_job("c", priority=7), a_job("a", priority=3), a_job("b", priority=3)]
    world.turn("w", done(world.one(), children=jobs))

    assert [world.one().key for _ in range(3)] == ["a", "b", "c"]
    assert world.run(run_id).running == 3


@pytest.mark.parametrize(("waited_s", "first"), [(0.9, "new"), (1.1, "old")])
def test_job_that_waited_long_overtakes_a_more_urgent_one(
    world: World, waited_s: float, first: str
) -> None:
    run_id = world.start()
    world.turn("w", done(world.one(), children=[a_job("keep it open")]))
    world.one()
    world.store.jobs.enqueue(run_id, [a_job("old", priority=9)])

    world.clock.advance(waited_s * AGEING_S * 4)
    world.store.jobs.enqueue(run_id, [a_job("new", priority=5)])

    assert world.one().key == first


def test_retried_job_keeps_its_place_in_the_queue(world: World) -> None:
    world.start_with_pages(3)
    job = world.one()
    world.turn("w", retried(job, 0))

    assert world.one().id == job.id


def test_lanes_share_alike_whatever_the_length_of_their_queues(world: World) -> None:
    world.start_all({"flood.org": 500, "brook.org": 3, "river.org": 500})

    taken = Counter(job.source_id for job in world.claim(slots=23))

    assert taken == {
        world.source("flood.org"): 10,
        world.source("brook.org"): 3,
        world.source("river.org"): 10,
    }


def test_single_job_beside_a_flood_is_claimed_in_the_next_turn(world: World) -> None:
    world.start_with_pages(1000, "flood.org")
    world.claim(slots=50)
    world.start(source="small.org")

    found = [world.one().source_id for _ in range(2)]

    assert world.source("small.org") in found


@pytest.mark.parametrize("slots", [1, 2, 7, 40])
def test_lanes_share_by_weight_however_few_slots_are_free(world: World, slots: int) -> None:
    world.start_all({"heavy.org": 600, "light.org": 600})
    heavy = world.source("heavy.org", LaneLimits(10_000, 10_000, weight=3.0))
    light = world.source("light.org", WIDE)

    taken: Counter[int] = Counter()
    while taken.total() < 200:
        taken.update(job.source_id for job in world.claim(slots=slots))

    assert taken[heavy] / taken[light] == pytest.approx(3.0, rel=0.15)


def test_slots_are_counted_from_rows_that_run(world: World) -> None:
    world.register("other")
    world.start_with_pages(10)
    world.source("acme.com", LaneLimits(concurrency=4, candidates=2))

    first = world.claim()
    assert len(first) == 4
    assert world.claim("other") == []

    world.store.workers.bury("w", "killed")
    assert len(world.claim("other")) == 4, "a dead worker leaks no slot"


def test_candidates_have_slots_of_their_own(world: World) -> None:
    run_id = world.start_with_pages(10)
    world.enqueue(run_id, *(f"c{n}" for n in range(10)), stage="persist")
    world.source("acme.com", LaneLimits(concurrency=3, candidates=2))

    units = Counter(job.stage for job in world.claim())

    assert units == {"extract": 3, "persist": 2}


def test_resources_are_never_oversubscribed(world: World) -> None:
    plan = Plan((PlannedStage("crunch", "page", cpu=1.0, memory_mb=400),))
    for number in range(5):
        world.start(plan, f"s{number}.org")

    def claim(cpu: float, memory_mb: float) -> int:
        turn = world.turn("w", capacity=Capacity(100, cpu, memory_mb))
        return len(turn.claimed)

    assert claim(cpu=0.5, memory_mb=4000) == 0
    assert claim(cpu=4, memory_mb=399) == 0
    assert claim(cpu=4, memory_mb=1024) == 2
    assert claim(cpu=1, memory_mb=4000) == 1
    assert claim(cpu=float("inf"), memory_mb=float("inf")) == 2


def test_job_without_resources_is_not_held_up_by_one_that_does_not_fit(world: World) -> None:
    plan = Plan((PlannedStage("crunch", "page", cpu=8.0), PlannedStage("read", "page")))
    world.start(plan)

    turn = world.turn("w", capacity=Capacity(10, cpu=1.0, memory_mb=100))

    assert [job.stage for job in turn.claimed] == ["read"]


def test_throttled_source_cools_down_and_others_go_on(world: World) -> None:
    world.start_with_pages(3)
    world.start(source="other.org")
    job = next(job for job in world.claim(slots=2) if job.source_id == world.source())

    turn = world.turn("w", throttled(job, 30), capacity=Capacity(10))

    assert turn.claimed == []
    assert turn.next_due_at == world.clock.now() + 30
    assert world.store.hosts.closed() == {"acme.com": world.clock.now() + 30}
    world.start(source="third.org")
    assert [job.source_id for job in world.claim()] == [world.source("third.org")]
    world.clock.advance(30)
    assert len(world.claim()) == 3
    assert world.store.hosts.closed() == {}


def test_shorter_wish_to_wait_does_not_end_a_longer_one(world: World) -> None:
    world.start_with_pages(3)
    one, two = world.claim(slots=2)

    world.turn("w", throttled(one, 60), throttled(two, 5))

    world.clock.advance(59)
    assert world.claim() == []
    assert world.store.hosts.closed() != {}


def test_job_under_which_two_workers_died_runs_alone_among_such(world: World) -> None:
    world.start_with_pages(6)
    for name in ("first", "second"):
        world.register(name)
        assert len(world.claim(name)) == 6
        world.store.workers.bury(name, "killed")

    suspects = world.claim()
    assert len(suspects) == 1
    assert suspects[0].deaths == 2
    assert world.claim() == []
    world.register("x")
    assert len(world.claim("x")) == 1, "each worker has a ward of its own"

    world.turn("w", done(suspects[0]))
    assert len(world.claim()) == 1


def test_ward_does_not_hold_up_healthy_jobs(world: World) -> None:
    run_id = world.start_with_pages(3)
    for name in ("first", "second"):
        world.register(name)
        world.claim(name)
        world.store.workers.bury(name, "killed")
    world.enqueue(run_id, *(f"healthy-{n}" for n in range(20)))

    found = world.claim(slots=10) + world.claim(slots=10)

    assert sum(job.deaths == 2 for job in found) == 1
    assert sum(job.deaths == 0 for job in found) >= 15


def test_worker_for_the_sound_leaves_suspects_to_the_ward(world: World) -> None:
    run_id = world.start_with_pages(3)
    for name in ("first", "second"):
        world.register(name)
        world.claim(name)
        world.store.workers.bury(name, "killed")
    assert world.store.jobs.has_suspects()
    world.enqueue(run_id, "healthy")

    sound = world.store.turn("w", [], Capacity(10, admits="sound"), {}).claimed
    world.register("ward")
    suspects = world.store.turn("ward", [], Capacity(10, admits="suspect"), {}).claimed

    assert [job.key for job in sound] == ["healthy"]
    assert [job.deaths for job in suspects] == [2]
    assert world.store.turn("ward", [], Capacity(10, admits="suspect"), {}).claimed == []


def test_busy_lane_leaves_a_place_for_a_suspect(world: World) -> None:
    run_id = world.start_with_pages(2)
    for name in ("first", "second"):
        world.register(name)
        world.claim(name)
        world.store.workers.bury(name, "killed")
    world.enqueue(run_id, *(f"healthy-{n}" for n in range(20)))
    limits = {1: LaneLimits(concurrency=3)}

    sound = world.store.turn("w", [], Capacity(10, admits="sound"), limits).claimed
    world.register("ward")
    suspects = world.store.turn("ward", [], Capacity(10, admits="suspect"), limits).claimed

    assert (len(sound), len(suspects)) == (2, 1)


def test_nothing_is_claimed_without_slots(world: World) -> None:
    world.start()

    assert world.claim(slots=0) == []


def test_quarantined_job_is_not_claimed(world: World) -> None:
    world.start_with_pages(2)
    one, two = world.claim()
    world.turn("w", quarantined(one), retried(two, 1000))

    assert world.claim() == []


def test_jobs_wait_for_their_lane_and_not_for_a_paused_run_before_them(world: World) -> None:
    one, two = world.start(key="one"), world.start(key="two")
    world.store.runs.pause(one, "ops", "")

    assert [job.run_id for job in world.claim()] == [two]
    assert world.store.jobs.has_startable(0) is False
    world.store.runs.resume(one, "ops", "")
    assert world.store.jobs.has_startable(0)


def test_a_worker_claims_only_what_it_has_loaded(world: World) -> None:
    pages = world.start_with_pages(2)
    other = world.start(source="new.org")
    known = Loaded(sources={world.source(): LoadedSource("v1", ("discover",))})

    assert world.turn("w", capacity=Capacity(10, loaded=known)).claimed == []
    world.store.workers.announce("w", known, 77)
    [code] = world.store.workers.codes()
    assert (code.worker, code.parent_pid, code.loaded) == ("w", 77, known)
    assert sorted(world.store.jobs.startable_stages(0)) == sorted(
        [(world.source(), "extract"), (world.source("new.org"), "discover")]
    )
    outlook = world.store.explanation.explain(world.limits, Capacity(10), run_id=other)
    assert (outlook.stands, outlook.gate) == ("person", "code")
    assert "new.org" in next(gate.by for gate in outlook.gates if gate.name == "code")
    outlook = world.store.explanation.explain(world.limits, Capacity(10), run_id=pages)
    assert "'extract'" in next(gate.by for gate in outlook.gates if gate.name == "code")

    whole = Loaded(
        sources={
            world.source(): LoadedSource("v1", ("discover", "extract")),
            world.source("new.org"): LoadedSource("v1", ("discover",)),
        }
    )
    world.store.workers.announce("w", whole, 77)
    assert world.store.explanation.explain(world.limits, Capacity(10), run_id=other).would_start
    claimed = world.turn("w", capacity=Capacity(10, loaded=whole)).claimed
    assert {job.run_id for job in claimed} == {pages, other}


def test_a_run_says_which_version_performs_it(world: World) -> None:
    run_id = world.start()

    assert world.store.runs.restamp(run_id, "v1", "v0", "w")
    assert not world.store.runs.restamp(run_id, "v1", "v2", "another"), "somebody was faster"

    assert world.run(run_id).pipeline_version == "v0"
    [event] = world.store.journal.events(run_id=run_id, kind="run.version_changed")
    assert (event.actor, event.detail) == ("w", "now uses pipeline v0; before: v1")


def test_each_turn_goes_on_behind_the_lanes_that_the_last_one_filled(world: World) -> None:
    runs = world.start_all({f"s{number:03}.com": 2 for number in range(120)})

    started = [[job.run_id for job in world.claim(slots=20)] for _ in range(12)]

    first, second = started[:6], started[6:]
    assert [run for turn in first for run in sorted(turn)] == runs
    assert [sorted(turn) for turn in second] == [sorted(turn) for turn in first]
    assert world.claim() == []


def test_lanes_are_read_a_stretch_at_a_time(world: World) -> None:
    runs = world.start_all({f"s{number}.com": 1 for number in range(10)})
    paused, *others = runs
    world.store.runs.pause(paused, "test", "")
    source_of = {run_id: world.source(f"s{number}.com") for number, run_id in enumerate(runs)}
    first, last = source_of[runs[0]], source_of[runs[-1]]

    def read(stretch: Stretch) -> tuple[list[int], int]:
        heads, _, reached = world.store._db.ready_lanes([], None, False, stretch)
        return [head[1] for head in heads], reached

    assert read(Stretch()) == (others, LAST)
    assert read(Stretch(first, last - 1)) == (runs[1:-1], last - 1)
    # The run after those that are enough is the last: all of its source are there.
    assert read(Stretch(first, LAST, 3)) == (runs[1:5], source_of[runs[4]])
    assert read(Stretch(first - 1, LAST, 0)) == ([], first)
    assert read(Stretch(last, LAST, 3)) == ([], LAST)


def test_a_source_with_many_runs_is_read_as_a_whole(world: World) -> None:
    runs = [world.start(key=f"run {number}") for number in range(5)]

    heads, _, reached = world.store._db.ready_lanes([], None, False, Stretch(-1, LAST, 2))

    assert (sorted(head[1] for head in heads), reached) == (runs, world.source())


AHEAD = 50


def claim_ahead(world: World, worker: str, ahead: int = AHEAD) -> Turn:
    wanted = {world.source("acme.com", LaneLimits(concurrency=4)): ahead}
    return world.turn(worker, capacity=Capacity(1000, ahead=wanted))


def test_only_worker_is_given_jobs_ahead_and_told_how_many_may_be_under_way(world: World) -> None:
    world.start_with_pages(100)

    turn = claim_ahead(world, "w")

    # A server's other databases may have been written meanwhile: then only what is sure is claimed.
    assert len(turn.claimed) in ({4, 4 + AHEAD} if world.kind.is_shared else {4 + AHEAD})
    assert turn.bounds == {world.source(): 4}


def test_worker_that_is_not_alone_is_given_nothing_ahead(world: World) -> None:
    world.start_with_pages(100)
    world.register("v")

    assert len(claim_ahead(world, "w").claimed) == 4
    assert claim_ahead(world, "v").claimed == []


def test_nobody_is_given_a_job_while_more_are_claimed_than_may_be_under_way(world: World) -> None:
    world.start_with_pages(100)
    first = claim_ahead(world, "w", 3).claimed
    world.register("v")

    while len(first) >= 4:
        assert claim_ahead(world, "v").claimed == []
        world.turn("w", done(first.pop()))

    assert len(claim_ahead(world, "v").claimed) == 1


def test_source_that_is_tried_again_is_not_claimed_ahead() -> None:
    """A breaker that lets one job through means one."""
    lane = Lane(
        1,
        (Head(1, "extract", "page", 100),),
        LaneLimits(concurrency=4),
        breaker=BreakerFacts("half_open", 0.0, 1),
    )

    assert with_ahead(lane, AHEAD) == lane
    assert with_ahead(structs.replace(lane, breaker=None), AHEAD).ahead == AHEAD


def test_what_takes_up_a_ceiling_is_not_claimed_ahead() -> None:
    lane = Lane(1, (Head(1, "extract", "page", 100, memory_mb=64.0),), LaneLimits(concurrency=4))

    assert with_ahead(lane, AHEAD) == lane
