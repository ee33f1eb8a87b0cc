"""Moves: every one in the tables is made by some verb."""

from __future__ import annotations

from penstock.jobs.job import JobState
from penstock.jobs.run import RunKind
from penstock.jobs.transitions import JOB_MOVES, RUN_MOVES
from tests.contract.scenes import SITE, World, done, quarantined, released, retried, skipped


def test_verbs_make_every_move_of_the_tables(world: World) -> None:
    world.watch()
    job_moves(world)
    held_moves(world)
    run_moves(world)
    draft_moves(world)
    while world.store.runs.sweep_cancelled():
        pass

    made = world.moves()

    jobs = {(leaves, enters) for what, _, _, leaves, enters in made if what == "job"}
    runs = {(leaves, enters) for what, _, _, leaves, enters in made if what == "run"}
    assert jobs == set(JOB_MOVES)
    assert runs == set(RUN_MOVES)


def job_moves(world: World) -> None:
    run_id = world.start_with_pages(8)
    jobs = world.claim(slots=7)
    world.turn("w", done(jobs[0]), skipped(jobs[1]), quarantined(jobs[2]), quarantined(jobs[3]))
    world.turn("w", retried(jobs[4], 10), retried(jobs[5], 99), released(jobs[6]))
    world.store.jobs.cancel(jobs[2].id, "ops", "")
    world.store.jobs.retry(jobs[3].id, "ops", "")
    world.clock.advance(10)
    world.claim(slots=2)
    world.store.jobs.set_aside(run_id, "extract", "it is exhausted", "w", limit=1)
    world.store.runs.cancel(run_id, "ops", "")


def held_moves(world: World) -> None:
    run_id = world.start_with_pages(2, key="held")
    waiting = world.one()
    world.turn("w", retried(waiting, 10))
    [queued] = world.jobs(run_id, JobState.QUEUED)
    for job_id in (queued.id, waiting.id):
        world.store.jobs.hold(job_id, "ops", "")
        world.store.jobs.unhold(job_id, "ops", "")
    world.store.jobs.hold(queued.id, "ops", "")
    world.store.jobs.cancel(queued.id, "ops", "")
    world.store.runs.cancel(run_id, "ops", "")


def draft_moves(world: World) -> None:
    left = world.start_with_pages(1, key="left")
    world.turn("w", quarantined(world.one()))
    world.store.runs.continue_(left, SITE, "v1", "ops", "")
    unwanted, _ = world.store.runs.start(
        world.source(), RunKind.FULL, SITE, "v1", key="unwanted", actor="ops", is_draft=True
    )
    world.store.runs.cancel(unwanted, "ops", "")


def run_moves(world: World) -> None:
    paused_early = world.start(key="paused early")
    world.store.runs.pause(paused_early, "ops", "")
    world.store.runs.resume(paused_early, "ops", "")
    world.store.runs.pause(paused_early, "ops", "")
    world.store.runs.cancel(paused_early, "ops", "")
    world.store.runs.cancel(world.start(key="cancelled early"), "ops", "")
    for is_paused in (False, True):
        for bad in (0, 1, 2):
            run_id = world.start_with_pages(2, key=f"{bad} {is_paused}")
            jobs = world.claim()
            if is_paused:
                world.store.runs.pause(run_id, "ops", "")
            world.turn("w", *(quarantined(j) if n < bad else done(j) for n, j in enumerate(jobs)))
            if bad:
                world.store.runs.retry_failed(run_id, "ops", "")
                world.turn("w", *(done(job) for job in world.claim()))
    resumed = world.start_with_pages(1, key="resumed")
    world.store.runs.pause(resumed, "ops", "")
    world.store.runs.resume(resumed, "ops", "")
