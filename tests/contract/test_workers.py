"""Workers: one lease each; the dead are buried, those that leave release, nobody leaks a job."""

from __future__ import annotations

import pytest

from penstock.jobs.effects import Effects
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Flush
from penstock.store.workers import LEASE_S
from tests.contract.scenes import World, a_job, done


def test_worker_that_does_not_beat_expires(world: World) -> None:
    world.register("quiet")
    world.clock.advance(LEASE_S - 1)
    assert world.store.workers.beat("w")
    assert world.store.workers.expired() == []

    world.clock.advance(1)

    assert world.store.workers.expired() == ["quiet"]


def test_late_beat_renews_a_worker_that_nobody_buried(world: World) -> None:
    world.clock.advance(LEASE_S * 10)
    assert world.store.workers.beat("w")
    assert world.store.workers.expired() == []


def test_buried_worker_learns_of_it(world: World) -> None:
    world.store.workers.bury("w", "killed")

    assert not world.store.workers.beat("w")
    assert world.turn("w").is_buried


def test_jobs_of_a_buried_worker_run_again_and_that_counts(world: World) -> None:
    world.register("doomed")
    run_id = world.start_with_pages(2)
    jobs = world.claim("doomed")

    assert sorted(world.store.workers.bury("doomed", "killed")) == sorted(job.id for job in jobs)

    again = world.claim()
    assert {(job.attempt, job.tries, job.deaths, job.is_resumed) for job in again} == {
        (2, 1, 1, True)
    }
    assert world.store.workers.bury("doomed", "killed") == []
    assert world.run(run_id).running == 2
    assert world.kinds(again[0].id) == ["job.started", "job.released", "job.started"]


def test_job_under_which_three_workers_died_is_quarantined(world: World) -> None:
    run_id = world.start_with_pages(1)
    for name in ("first", "second", "third"):
        world.register(name)
        [job] = world.claim(name)
        world.store.workers.bury(name, "signal 9")

    row = world.job(job.id)
    assert (row.state, row.deaths, row.kind) == (JobState.QUARANTINED, 3, "poison")
    assert "signal 9" in (row.error or "")
    assert world.run(run_id).state == "failed"
    assert world.claim() == []


@pytest.mark.parametrize(("brings", "deaths"), [("new", 0), ("same", 2)])
def test_deaths_are_counted_since_an_attempt_last_brought_something_new(
    world: World, brings: str, deaths: int
) -> None:
    world.start()
    for died, name in enumerate(("first", "second"), 1):
        world.register(name)
        job = next(each for each in world.claim(name) if each.stage == "discover")
        world.turn(name, Flush(job.id, job.attempt, Effects(children=[a_job("a")]), 1))
        world.store.workers.bury(name, "signal 9")
        assert world.job(job.id).deaths == died
    world.register("third")
    job = next(each for each in world.claim("third") if each.stage == "discover")
    child = a_job("a" if brings == "same" else "b")
    world.turn("third", Flush(job.id, job.attempt, Effects(children=[child]), 1))
    assert world.job(job.id).deaths == deaths


def test_retried_poison_has_its_deaths_forgiven(world: World) -> None:
    world.start_with_pages(1)
    for name in ("first", "second", "third"):
        world.register(name)
        [job] = world.claim(name)
        world.store.workers.bury(name, "signal 9")

    world.store.jobs.retry(job.id, "ops", "mended")

    assert world.one().deaths == 0


def test_worker_that_signs_off_releases_without_spending_a_try(world: World) -> None:
    world.register("leaving")
    world.start_with_pages(2)
    jobs = world.claim("leaving")
    world.turn("leaving", done(jobs[0]))

    assert world.store.workers.sign_off("leaving") == [jobs[1].id]

    again = world.one()
    assert (again.id, again.attempt, again.tries, again.deaths) == (jobs[1].id, 2, 0, 0)
    assert again.is_resumed
    assert world.store.workers.sign_off("leaving") == []


def test_worker_shows_what_it_runs(world: World) -> None:
    world.start_with_pages(2)
    jobs = world.claim()

    [row] = world.store.workers.all()

    assert (row.id, row.running) == ("w", 2)
    assert world.store.workers.jobs_of("w") == {(job.id, job.attempt) for job in jobs}
    assert world.store.workers.jobs_of("nobody") == set()


def test_burial_lets_a_run_end_that_waited_for_its_poison(world: World) -> None:
    run_id = world.start_with_pages(2)
    for name in ("first", "second", "third"):
        world.register(name)
        claimed = world.claim(name)
        if name == "first":
            world.turn(name, done(claimed[0]))
        world.store.workers.bury(name, "killed")

    assert world.run(run_id).state == "partial"
