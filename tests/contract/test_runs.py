"""Runs: how they begin, go on and end, and how an operator steers them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.errors import UsageError
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.run import Plan, PlannedStage
from tests.contract.scenes import (
    Ends,
    World,
    a_job,
    done,
    pages,
    quarantined,
    retried,
    skipped,
    snoozed,
    throttled,
)

PACKAGED = Plan(
    (
        PlannedStage("discover", "run", is_required=True),
        PlannedStage("prices", "run", is_required=True),
        PlannedStage("extract", "page", ("discover",)),
        PlannedStage("report", "run", ("extract", "prices"), is_gather=True, is_required=True),
        PlannedStage("export", "run", ("report",), is_gather=True, is_required=True),
    )
)


def claim_stage(world: World, stage: str) -> list[str]:
    return [job.stage for job in world.claim() if job.stage == stage]


def test_run_is_queued_until_its_first_job_is_claimed(world: World) -> None:
    run_id = world.start()
    assert (world.run(run_id).state, world.run(run_id).started_at) == ("queued", None)

    world.clock.advance(3)
    world.one()

    assert (world.run(run_id).state, world.run(run_id).started_at) == ("running", world.clock.now())
    assert world.kinds(run_id=run_id) == ["run.queued", "run.started", "job.started"]


def test_run_of_good_ends_is_completed(world: World) -> None:
    run_id = world.start_with_pages(2)
    one, two = world.claim()

    turn = world.turn("w", done(one), skipped(two))

    assert turn.ended_runs == [run_id]
    run = world.run(run_id)
    assert (run.state, run.finished_at) == ("completed", world.clock.now())
    assert (run.pages, run.pages_done, run.succeeded, run.skipped) == (2, 2, 2, 1)


def test_run_goes_on_while_anything_waits(world: World) -> None:
    run_id = world.start_with_pages(2)
    one, two = world.claim()

    assert world.turn("w", done(one), retried(two, 60)).ended_runs == []
    world.clock.advance(60)
    world.turn("w", done(world.one()))

    assert world.run(run_id).state == "completed"


def test_failed_page_makes_the_run_partial(world: World) -> None:
    run_id = world.start_with_pages(2)
    one, two = world.claim()

    world.turn("w", done(one), quarantined(two))

    assert world.run(run_id).state == "partial"
    assert world.job(two.id).error == "broken"


def test_run_of_which_every_page_failed_is_failed(world: World) -> None:
    run_id = world.start_with_pages(2)

    world.turn("w", *(quarantined(job) for job in world.claim()))

    assert world.run(run_id).state == "failed"


def test_failed_candidates_alone_make_the_run_partial(world: World) -> None:
    run_id = world.start_with_pages(1)
    world.turn("w", done(world.one(), children=[a_job("c", stage="persist")]))

    world.turn("w", quarantined(world.one()))

    assert world.run(run_id).state == "partial"


def test_failed_required_step_fails_the_run_after_its_pages_ended(world: World) -> None:
    run_id = world.start()
    root = world.one()
    world.enqueue(run_id, "early")

    world.turn("w", quarantined(root))
    assert world.run(run_id).state == "running"
    world.turn("w", done(world.one()))

    assert world.run(run_id).state == "failed"


def test_gather_starts_once_when_all_it_comes_after_is_closed(world: World) -> None:
    run_id = world.start(PACKAGED)
    discover, prices = world.claim()
    world.turn("w", done(discover, children=pages(2)))
    world.turn("w", *(done(job) for job in world.claim()))
    assert world.jobs(run_id, stage="report") == []

    world.turn("w", done(prices))
    [report] = world.claim()
    assert report.stage == "report"
    world.turn("w", done(report))
    [export] = world.claim()
    assert world.turn("w", done(export)).ended_runs == [run_id]

    assert world.run(run_id).state == "completed"
    assert len(world.jobs(run_id, stage="report")) == 1


def test_gather_behind_a_failed_required_step_does_not_run(world: World) -> None:
    run_id = world.start(PACKAGED)
    discover, prices = world.claim()

    world.turn("w", done(discover, children=pages(1)), quarantined(prices))
    world.turn("w", done(world.one()))

    assert world.run(run_id).state == "failed"
    assert world.jobs(run_id, stage="report") == []
    assert world.claim() == []


def test_gather_runs_after_failed_pages(world: World) -> None:
    run_id = world.start(PACKAGED)
    discover, prices = world.claim()
    world.turn("w", done(discover, children=pages(2)), done(prices))
    one, two = world.claim()

    world.turn("w", done(one), quarantined(two))

    assert [job.stage for job in world.claim()] == ["report"]
    assert world.run(run_id).state == "running"


def test_gather_that_did_not_run_runs_after_the_retry(world: World) -> None:
    run_id = world.start(PACKAGED)
    discover, prices = world.claim()
    world.turn("w", done(discover), quarantined(prices))
    assert world.run(run_id).state == "failed"

    assert world.store.runs.retry_failed(run_id, "test", "mended") == 1
    world.turn("w", done(world.one()))

    assert [job.stage for job in world.claim()] == ["report"]


def test_retry_failed_touches_only_what_failed(world: World) -> None:
    run_id = world.start_with_pages(4)
    one, two, three, four = world.claim()
    world.turn("w", done(one), quarantined(two), skipped(three), quarantined(four))
    others = [world.job(job.id) for job in (one, three)]

    assert world.store.runs.retry_failed(run_id, "ops", "site is back") == 2

    assert world.run(run_id).state == "running"
    assert world.run(run_id).finished_at is None
    assert sorted(job.id for job in world.claim()) == [two.id, four.id]
    assert [world.job(job.id) for job in (one, three)] == others
    assert world.store.runs.retry_failed(run_id, "ops", "again") == 0


def test_retried_job_has_fresh_tries_and_goes_on_counting_attempts(world: World) -> None:
    world.start_with_pages(1)
    job = world.one()
    world.turn("w", quarantined(job))

    assert world.store.jobs.retry(job.id, "ops", "now")

    again = world.one()
    assert (again.attempt, again.tries, again.deaths) == (2, 0, 0)
    assert "job.requeued" in world.kinds(job.id)


def test_waiting_job_may_be_retried_before_it_is_due(world: World) -> None:
    world.start_with_pages(1)
    job = world.one()
    world.turn("w", retried(job, 3600))

    assert world.store.jobs.retry(job.id, "ops", "now")
    assert world.one().id == job.id


@pytest.mark.parametrize("end", [done, skipped])
def test_job_that_ended_well_is_not_retried(world: World, end: Callable[[Claimed], Ends]) -> None:
    world.start_with_pages(1)
    job = world.one()
    world.turn("w", end(job))
    before = world.dump()

    assert not world.store.jobs.retry(job.id, "ops", "again")
    assert not world.store.jobs.cancel(job.id, "ops", "no")
    assert world.dump() == before


def test_paused_run_starts_nothing_and_finishes_what_runs(world: World) -> None:
    run_id = world.start_with_pages(2)
    job = world.one()

    assert world.store.runs.pause(run_id, "ops", "look first")
    assert not world.store.runs.pause(run_id, "ops", "again")
    world.turn("w", done(job))
    assert world.claim() == []
    assert world.run(run_id).state == "paused"

    assert world.store.runs.resume(run_id, "ops", "fine")
    assert not world.store.runs.resume(run_id, "ops", "again")
    assert len(world.claim()) == 1
    assert world.kinds(run_id=run_id).count("run.paused") == 1


def test_paused_run_ends_with_its_last_running_job(world: World) -> None:
    run_id = world.start_with_pages(1)
    job = world.one()
    world.store.runs.pause(run_id, "ops", "")

    world.turn("w", done(job))

    assert world.run(run_id).state == "completed"


def test_run_paused_before_it_began_goes_on_when_resumed(world: World) -> None:
    run_id = world.start()
    world.store.runs.pause(run_id, "ops", "")
    assert world.claim() == []

    world.store.runs.resume(run_id, "ops", "")

    assert len(world.claim()) == 1


def test_paused_source_starts_nothing_of_any_run(world: World) -> None:
    source_id = world.source()
    world.start(key="one")
    world.start(key="two")
    world.start(source="other.org")

    assert world.store.sources.pause(source_id, "ops", "sick")
    assert not world.store.sources.pause(source_id, "ops", "sick")
    assert {job.source_id for job in world.claim()} == {world.source("other.org")}

    assert world.store.sources.resume(source_id, "ops", "well")
    assert not world.store.sources.resume(source_id, "ops", "well")
    assert len(world.claim()) == 2


def test_cancelled_run_starts_nothing_and_is_swept_in_batches(world: World) -> None:
    run_id = world.start_with_pages(10)
    running = world.claim(slots=2)
    world.turn("w", retried(running[0], 60))

    assert world.store.runs.cancel(run_id, "ops", "wrong site")

    assert world.run(run_id).state == "cancelled"
    assert world.job(running[1].id).state is JobState.CANCELLED
    assert world.claim() == []
    assert [world.store.runs.sweep_cancelled(4) for _ in range(4)] == [4, 4, 1, 0]
    assert len(world.jobs(run_id, JobState.CANCELLED)) == 10
    assert not world.store.runs.cancel(run_id, "ops", "again")


def test_cancelled_run_with_nothing_open_does_not_hide_the_next(world: World) -> None:
    one, two = world.start(key="one"), world.start(key="two")
    world.claim()
    world.enqueue(two, "left")
    world.store.runs.cancel(one, "ops", "")
    world.store.runs.cancel(two, "ops", "")

    assert world.store.runs.sweep_cancelled() == 1
    assert world.store.runs.sweep_cancelled() == 0


def test_nothing_of_a_cancelled_run_is_retried(world: World) -> None:
    run_id = world.start_with_pages(3)
    one, two, _ = world.claim()
    world.turn("w", quarantined(one), retried(two, 60))
    world.store.runs.cancel(run_id, "ops", "")
    while world.store.runs.sweep_cancelled():
        pass

    assert not world.store.jobs.retry(one.id, "ops", "")
    assert world.store.runs.retry_failed(run_id, "ops", "") == 0
    assert world.run(run_id).state == "cancelled"


def test_cancelled_page_lets_its_run_end(world: World) -> None:
    run_id = world.start_with_pages(2)
    one, two = world.claim()
    world.turn("w", done(one))

    assert world.store.jobs.cancel(two.id, "ops", "not wanted")

    assert world.run(run_id).state == "completed"


def test_run_whose_first_job_is_cancelled_before_it_began_is_cancelled(world: World) -> None:
    run_id = world.start()
    [root] = world.jobs(run_id)

    world.store.jobs.cancel(root.id, "ops", "not wanted")

    assert world.run(run_id).state == "cancelled"
    assert world.kinds(run_id=run_id)[-1] == "run.cancelled"


def test_run_of_pages_alone_that_is_cancelled_before_it_began_is_cancelled(world: World) -> None:
    run_id = world.start(Plan((PlannedStage("read", "page"),)))
    [root] = world.jobs(run_id)

    world.store.jobs.cancel(root.id, "ops", "not wanted")

    assert world.run(run_id).state == "cancelled"


def test_run_whose_required_step_is_cancelled_is_cancelled_and_gathers_nothing(
    world: World,
) -> None:
    run_id = world.start(PACKAGED)
    discover, prices = world.claim()
    world.turn("w", done(discover))

    world.store.jobs.cancel(prices.id, "ops", "not wanted")

    assert world.run(run_id).state == "cancelled"
    assert world.jobs(run_id, stage="report") == []


def test_what_does_not_exist_is_named(world: World) -> None:
    with pytest.raises(UsageError, match="no job 99"):
        world.store.jobs.cancel(99, "ops", "")
    with pytest.raises(UsageError, match="no job 99"):
        world.store.jobs.retry(99, "ops", "")
    with pytest.raises(UsageError, match="no run 99"):
        world.store.runs.retry_failed(99, "ops", "")
    world.source()
    with pytest.raises(UsageError, match=r"no source 'acme\.con'"):
        world.store.runs.newest(source="acme.con")
    assert world.store.runs.get(99) is None
    assert world.store.jobs.get(99) is None
    assert not world.store.runs.pause(99, "ops", "")
    assert not world.store.runs.cancel(99, "ops", "")


def test_retries_throttles_and_snoozes_are_told_apart(world: World) -> None:
    run_id = world.start_with_pages(3)
    one, two, three = world.claim()

    world.turn("w", retried(one, 1), throttled(two, 1), snoozed(three, 1))

    assert (world.run(run_id).retried, world.run(run_id).throttled) == (1, 1)
    assert [world.job(job.id).tries for job in (one, two, three)] == [1, 0, 0]
    assert [world.job(job.id).throttles for job in (one, two, three)] == [0, 1, 0]
    assert [world.kinds(job.id)[-1] for job in (one, two, three)] == [
        "job.retry_scheduled", "job.throttled", "job.snoozed",
    ]  # fmt: skip


def test_every_steering_verb_is_in_the_journal_with_who_and_why(world: World) -> None:
    run_id = world.start_with_pages(1)
    world.store.sources.pause(world.source(), "ann", "maintenance")

    [event] = world.store.journal.events(source="acme.com")[-1:]

    assert (event.kind, event.actor, event.detail) == ("source.paused", "ann", "maintenance")
    world.store.runs.cancel(run_id, "bob", "enough")
    assert world.store.journal.events(run_id=run_id)[-1].actor == "bob"


def test_many_runs_are_read_with_one_query(world: World) -> None:
    runs = [world.start(source=f"shop-{number}", key="k") for number in range(3)]
    world.claim()

    found = world.store.runs.by_id([*runs, runs[0], 10_000])

    assert {row.id: row for row in found} == {run_id: world.run(run_id) for run_id in runs}
    assert world.store.runs.by_id([]) == []
