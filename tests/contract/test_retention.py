"""Retention: what is old goes, in small batches; what is still needed stays."""

from __future__ import annotations

from penstock.gates.capacity import Capacity
from penstock.jobs.job import JobState
from penstock.store.snapshots import Kept
from penstock.store.upkeep import Keep
from tests.contract.scenes import World, a_save, done, pages, quarantined

DAY_S = 86_400.0
FOR_EVER = Keep(None, None, None, None)
JOBS = Keep(30 * DAY_S, None, None, None)


def ended_run(world: World, count: int, failed: int = 0, key: str = "first") -> int:
    run_id = world.start(key=key)
    world.turn("w", done(world.one(), children=pages(count)))
    jobs = world.claim()
    ends = [quarantined(job) if n < failed else done(job) for n, job in enumerate(jobs)]
    world.turn("w", *ends)
    assert world.run(run_id).is_ended
    return run_id


def prune_all(world: World, keep: Keep, limit: int = 1000) -> list[int]:
    found = []
    while dropped := world.store.upkeep.prune(keep, limit):
        found.append(dropped)
    return found


def test_finished_jobs_go_in_small_batches(world: World) -> None:
    run_id = ended_run(world, 25)
    assert prune_all(world, JOBS) == []

    world.clock.advance(31 * DAY_S)

    assert prune_all(world, JOBS, limit=10) == [10, 10, 6]
    assert world.jobs(run_id) == []
    assert world.dump()["job_item"] == []
    assert world.run(run_id).succeeded == 26, "the run still tells what it did"


def test_quarantined_jobs_and_their_evidence_are_kept(world: World) -> None:
    run_id = world.start_with_pages(2)
    good, bad = world.claim()
    kept = [
        Kept(
            job.id,
            job.id,
            run_id,
            "https://a/",
            200,
            {},
            world.clock.now(),
            f"h{job.id}",
            "s",
            0,
            1,
        )
        for job in (good, bad)
    ]
    world.store.turn("w", [done(good), quarantined(bad)], Capacity(0), {}, kept)

    world.clock.advance(400 * DAY_S)
    prune_all(world, Keep(DAY_S, DAY_S, DAY_S, DAY_S))

    [left] = world.jobs(run_id)
    assert (left.id, left.state, left.error) == (bad.id, JobState.QUARANTINED, "broken")
    assert world.store.snapshots.of(bad.id, "https://a/") is not None
    assert world.store.snapshots.of(good.id, "https://a/") is None
    assert world.store.runs.retry_failed(run_id, "ops", "late") == 1
    world.turn("w", done(world.one()))


def test_keys_of_an_active_run_outlive_any_retention(world: World) -> None:
    run_id = world.start_with_pages(2)
    job = world.one()
    world.turn("w", done(job))
    world.clock.advance(400 * DAY_S)

    assert prune_all(world, JOBS) == []
    [answer] = world.enqueue(run_id, job.key)

    assert (answer.job_id, answer.is_new) == (job.id, False)


def test_jobs_behind_many_that_must_stay_are_found_in_one_pass(world: World) -> None:
    world.start_with_pages(300, "active.org")
    world.store.sources.pause(world.source("active.org"), "ops", "")
    ended_run(world, 200, failed=150)
    young = world.start_with_pages(3, key="young")
    world.clock.advance(31 * DAY_S)
    world.turn("w", *(done(job) for job in world.claim()))

    assert prune_all(world, JOBS, limit=20) == [20, 20, 11]
    assert len(world.jobs(young)) == 4


def test_journal_goes_by_its_own_age(world: World) -> None:
    world.start()
    world.clock.advance(10 * DAY_S)
    world.start(key="second")
    before = world.kinds()

    prune_all(world, Keep(None, 5 * DAY_S, None, None), limit=2)

    left = world.store.journal.events(after_id=0)
    assert [event.at for event in left] == [world.clock.now()] * len(left)
    assert 0 < len(left) < len(before)


def test_version_is_kept_for_as_long_after_it_was_superseded(world: World) -> None:
    keep = Keep(None, None, 5 * DAY_S, None)
    for number in range(3):
        run_id = world.start_with_pages(1, key=str(number))
        world.turn("w", done(world.one(), saves=[a_save("k", {"n": number})]))
        assert world.run(run_id).is_ended
        world.clock.advance(100 * DAY_S if number == 0 else 2 * DAY_S)

    assert prune_all(world, keep) == [], "the first is old, but was superseded only lately"
    world.clock.advance(2 * DAY_S)
    assert prune_all(world, keep) == [1]

    assert [row.data for row in world.store.records.versions("product", "k")] == [
        {"n": 1},
        {"n": 2},
    ]
    world.clock.advance(900 * DAY_S)
    prune_all(world, keep)
    assert [row.data for row in world.store.records.of("product")] == [{"n": 2}]


def test_nothing_goes_when_all_is_kept_for_ever(world: World) -> None:
    ended_run(world, 5)
    before = world.dump()
    world.clock.advance(10_000 * DAY_S)

    assert world.store.upkeep.prune(FOR_EVER) == 0
    assert world.dump() == before


def test_overview_and_lists_go_on_after_retention(world: World) -> None:
    run_id = ended_run(world, 5, failed=1)
    world.clock.advance(400 * DAY_S)
    prune_all(world, Keep(DAY_S, DAY_S, DAY_S, DAY_S))

    assert world.store.overview().quarantined == 1
    assert [run.id for run in world.store.runs.newest()] == [run_id]
    assert world.store.journal.events() == []
