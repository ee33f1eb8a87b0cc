"""Accounts on every store: each page and candidate ends up in one place, whatever happened on the way."""

from __future__ import annotations

import pytest

from penstock.jobs.effects import Effects, Note, Rejection
from penstock.jobs.emptiness import AS_EXPECTED, NOT_ALLOWED, UNEXPECTED, ZERO_YIELD
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Flush, Settlement
from penstock.jobs.run import Plan, PlannedStage, RunKind, RunState
from penstock.jobs.run_sums import CandidateSum, PageSum, RunSums
from tests.contract.scenes import (
    SITE,
    World,
    a_job,
    a_save,
    done,
    pages,
    quarantined,
    released,
    retried,
    skipped,
)

NO = Rejection("no_price", "no price")
CHAIN = Plan(
    (
        PlannedStage("discover", "run", is_required=True),
        PlannedStage("extract", "page", ("discover",)),
        PlannedStage("normalize", "candidate", ("extract",)),
        PlannedStage("enrich", "page", ("normalize",)),
        PlannedStage("persist", "candidate", ("enrich",)),
    )
)


def account(world: World, run_id: int) -> RunSums:
    return world.store.runs.account(world.run(run_id))


def candidates(world: World, *keys: str, run: str = "first") -> int:
    """A run with one page done and these candidates queued."""
    run_id = world.start(key=run)
    world.turn("w", done(world.one(), children=[a_job("page")]))
    children = [a_job(key, {"sku": key}, stage="persist") for key in keys]
    world.turn("w", done(world.one(), children=children))
    return run_id


def by_key(world: World) -> dict[str, Claimed]:
    return {job.key: job for job in world.claim()}


def test_every_candidate_ends_up_in_one_place(world: World) -> None:
    world.turn("w")
    earlier = candidates(world, "x", run="earlier")
    world.turn("w", done(world.one(), saves=[a_save("same", {"a": 1})]))
    assert account(world, earlier).candidates.accepted == 1
    run_id = candidates(world, "new", "same", "bad", "none", "skipped", "broken", "sent")
    jobs = by_key(world)

    world.turn(
        "w",
        done(jobs["new"], saves=[a_save("new", {"a": 1})]),
        done(jobs["same"], saves=[a_save("same", {"a": 1})]),
        done(jobs["bad"], effects=Effects(rejections=[NO])),
        done(jobs["none"], effects=Effects(is_dropped=True)),
        skipped(jobs["skipped"]),
        quarantined(jobs["broken"]),
        done(jobs["sent"], effects=Effects(notes=[Note("sent elsewhere")])),
    )

    assert account(world, run_id) == RunSums(
        PageSum(discovered=1, extracted=1, skipped=0, failed=0, cancelled=0, open=0),
        CandidateSum(
            candidates=7, accepted=2, rejected=1, duplicate=1, dropped=2, failed=1, passed=0,
            cancelled=0, open=0,
        ),
    )  # fmt: skip
    assert account(world, run_id).unaccounted == 0


def test_what_is_open_is_shown_as_open(world: World) -> None:
    run_id = world.start_with_pages(5)
    jobs = world.claim(slots=2)
    world.turn("w", done(jobs[0], children=[a_job("c", stage="persist")]), retried(jobs[1], 60.0))

    found = account(world, run_id)

    assert (found.pages.discovered, found.pages.extracted, found.pages.open) == (5, 1, 4)
    assert (found.candidates.candidates, found.candidates.open) == (1, 1)
    assert found.unaccounted == 0


def test_pages_end_up_in_one_place(world: World) -> None:
    run_id = world.start_with_pages(4)
    one, two, three, four = world.claim()
    world.turn("w", done(one), skipped(two), quarantined(three), released(four))
    world.store.jobs.cancel(four.id, "ops", "")

    found = account(world, run_id).pages

    assert (found.extracted, found.skipped, found.failed, found.cancelled) == (1, 1, 1, 1)
    assert (found.discovered, found.open, found.unaccounted) == (4, 0, 0)


def test_candidate_that_is_handed_on_is_passed_and_counted_where_it_goes(world: World) -> None:
    run_id = world.start(CHAIN)
    world.turn("w", done(world.one(), children=[a_job("p")]))
    world.turn("w", done(world.one(), children=[a_job("n", stage="normalize")]))
    world.turn("w", done(world.one(), children=[a_job("e", stage="enrich")]))
    world.turn("w", done(world.one(), children=[a_job("c", stage="persist")]))
    world.turn("w", done(world.one(), saves=[a_save("c", {})]))

    found = account(world, run_id)

    assert (found.candidates.candidates, found.candidates.passed) == (2, 1)
    assert (found.candidates.accepted, found.unaccounted) == (1, 0)


def test_retry_of_what_failed_moves_it_from_failed_to_accepted(world: World) -> None:
    run_id = candidates(world, "a")
    world.turn("w", quarantined(world.one()))
    assert account(world, run_id).candidates.failed == 1

    world.store.runs.retry_failed(run_id, "ops", "")
    world.turn("w", done(world.one(), saves=[a_save("a", {})]))

    found = account(world, run_id)
    assert (found.candidates.failed, found.candidates.accepted) == (0, 1)
    assert found.unaccounted == 0


def test_late_end_of_a_zombie_counts_nothing(world: World) -> None:
    run_id = candidates(world, "a")
    zombie = world.one()
    world.store.workers.bury("w", "killed")
    world.register("w")
    again = world.one()
    late = done(zombie, effects=Effects(rejections=[NO]))

    world.turn("w", late, done(again, saves=[a_save("a", {})]), late)

    found = account(world, run_id)
    assert (found.candidates.accepted, found.candidates.rejected) == (1, 0)
    assert found.unaccounted == 0


def test_what_was_saved_in_commits_of_its_own_makes_a_candidate_accepted(world: World) -> None:
    run_id = candidates(world, "a")
    job = world.one()
    world.turn("w", Flush(job.id, job.attempt, Effects(saves=[a_save("a", {})]), number=1))

    world.turn("w", done(job, effects=Effects(saved_before=1)))

    assert account(world, run_id).candidates.accepted == 1


def test_attempt_that_was_cut_short_after_a_commit_leaves_the_sums_right(world: World) -> None:
    run_id = candidates(world, "a")
    job = world.one()
    world.turn("w", Flush(job.id, job.attempt, Effects(saves=[a_save("a", {})]), number=1))
    world.store.workers.bury("w", "killed")
    world.register("w")

    world.turn("w", done(world.one(), saves=[a_save("a", {})]))

    found = account(world, run_id)
    assert (found.candidates.duplicate, found.unaccounted) == (1, 0)


def test_unit_that_the_worker_tells_is_not_looked_up(world: World) -> None:
    run_id = candidates(world, "a")
    job = world.one()

    world.turn("w", Settlement(job.id, job.attempt, JobState.SUCCEEDED, unit="candidate"))

    assert account(world, run_id).candidates.accepted == 1


def test_cancelled_run_keeps_its_sums_while_it_is_swept(world: World) -> None:
    run_id = candidates(world, *"abcdef")
    world.claim(slots=2)
    world.store.runs.cancel(run_id, "ops", "")
    assert account(world, run_id).unaccounted == 0

    while world.store.runs.sweep_cancelled(2):
        assert account(world, run_id).unaccounted == 0

    assert account(world, run_id).candidates.cancelled == 6


# A difference.


def test_difference_at_the_end_of_a_run_is_an_event(world: World) -> None:
    run_id = candidates(world, "a", "b")
    world.tamper(f"UPDATE run SET candidates_added = candidates_added + 1 WHERE id = {run_id}")
    jobs = by_key(world)

    world.turn("w", *(done(job, saves=[a_save(job.key, {})]) for job in jobs.values()))

    assert account(world, run_id).candidates.unaccounted == 1
    assert "run.counts_mismatch" in world.kinds(run_id=run_id)
    [event] = [
        e for e in world.store.journal.events(run_id=run_id) if e.kind == "run.counts_mismatch"
    ]
    assert event.detail == "not accounted for: 0 pages, 1 candidate"
    assert world.store.upkeep.check() == [f"enqueued and ended jobs do not add up: run {run_id}"]
    world.tamper(f"UPDATE run SET candidates_added = candidates_added - 1 WHERE id = {run_id}")


def test_run_that_adds_up_says_nothing(world: World) -> None:
    run_id = candidates(world, "a")

    world.turn("w", done(world.one(), saves=[a_save("a", {})]))

    assert "run.counts_mismatch" not in world.kinds(run_id=run_id)


def test_run_that_older_code_may_have_a_hand_in_is_not_held_to_its_sums(world: World) -> None:
    world.store.workers.register("old", "there", 1, "0.1")
    world.tamper("UPDATE worker SET schema = 2 WHERE id = 'old'")
    run_id = candidates(world, "a")
    world.tamper(f"UPDATE run SET candidates_added = 99 WHERE id = {run_id}")

    world.turn("w", done(world.one(), saves=[a_save("a", {})]))

    found = account(world, run_id)
    assert (found.is_kept, found.unaccounted) == (False, 0)
    assert (found.candidates.candidates, found.candidates.accepted) == (1, 1)
    assert "run.counts_mismatch" not in world.kinds(run_id=run_id)
    assert world.store.upkeep.check() == []


def test_failures_are_counted_by_kind(world: World) -> None:
    run_id = world.start_with_pages(3)
    for job, kind in zip(world.claim(), ("auth", "data", "data"), strict=True):
        failed = quarantined(job)
        world.turn("w", Settlement(
            failed.job_id, failed.attempt, failed.state, spends_try=True, reason=kind, error="x",
        ))  # fmt: skip

    assert world.store.runs.failures_by_kind(run_id) == {"data": 2, "auth": 1}


def test_failures_of_a_run_are_told_by_cause_the_most_frequent_first(world: World) -> None:
    run_id = world.start_with_pages(4)
    found = ("no price", "no title", "no price", "no price")
    claimed = world.claim()
    for job, cause in zip(claimed, found, strict=True):
        world.turn("w", Settlement(
            job.id, job.attempt, JobState.QUARANTINED, spends_try=True, reason="data",
            error=f"{cause} on {job.key}", cause=cause,
        ))  # fmt: skip

    price, title = world.store.runs.failures_by_cause(run_id)

    assert (price.cause, price.jobs, price.job_id) == ("no price", 3, claimed[0].id)
    assert (price.kind, price.error) == ("data", f"no price on {claimed[0].key}")
    assert (title.cause, title.jobs, title.job_id) == ("no title", 1, claimed[1].id)
    assert world.store.runs.failures_by_cause(run_id, limit=1) == [price]


def test_runs_know_which_runs_were_made_of_them(world: World) -> None:
    run_id = world.start()
    replay, _ = world.store.runs.start(
        world.source(), RunKind.REPLAY, SITE, "v1", key="r", actor="a", of_run_id=run_id
    )

    assert [row.id for row in world.store.runs.made_of(run_id)] == [replay]


# Empty ends.


def a_full_run(world: World, key: str, records: int) -> int:
    run_id = world.start(key=key)
    world.turn("w", done(world.one(), children=pages(1)))
    saves = [a_save(f"r{number}", {"of": key}) for number in range(records)]
    world.turn("w", done(world.one(), saves=saves))
    return run_id


def an_empty_run(world: World, key: str = "empty") -> int:
    run_id = world.start(key=key)
    world.turn("w", done(world.one()))
    return run_id


def signals(world: World) -> list[str]:
    found = (row.name for row in world.store.signals.after())
    return [name for name in found if not name.startswith("run.")]


def test_empty_run_is_as_expected_where_nothing_is_known(world: World) -> None:
    run = world.run(an_empty_run(world))

    assert (run.state, run.end_reason) == (RunState.COMPLETED, AS_EXPECTED)
    assert signals(world) == []


def test_empty_run_of_a_source_that_usually_yields_is_partial_and_tells(world: World) -> None:
    for number in range(3):
        a_full_run(world, f"run-{number}", 2)

    run_id = an_empty_run(world)

    run = world.run(run_id)
    assert (run.state, run.end_reason) == (RunState.PARTIAL, UNEXPECTED)
    assert signals(world) == [ZERO_YIELD]
    assert ZERO_YIELD in world.kinds(run_id=run_id)
    [event] = [e for e in world.store.journal.events(run_id=run_id) if e.kind == "run.partial"]
    assert event.detail == UNEXPECTED


def test_other_sources_and_kinds_are_not_compared(world: World) -> None:
    for number in range(5):
        a_full_run(world, f"run-{number}", 2)
    run_id, _ = world.store.runs.start(
        world.source(), RunKind.INCREMENTAL, SITE, "v1", key="i", actor="a"
    )
    world.turn("w", done(world.one()))
    other = world.start(source="other.org", key="o")
    world.turn("w", done(world.one()))

    assert {world.run(each).end_reason for each in (run_id, other)} == {AS_EXPECTED}


def test_run_that_yields_again_is_no_longer_compared_with_its_empty_end(world: World) -> None:
    for number in range(3):
        a_full_run(world, f"run-{number}", 2)
    an_empty_run(world)

    run = world.run(a_full_run(world, "again", 1))

    assert (run.state, run.end_reason) == (RunState.COMPLETED, "")


@pytest.mark.parametrize("is_auth", [True, False], ids=["auth", "robots"])
def test_run_that_may_look_at_nothing_has_failed(world: World, is_auth: bool) -> None:
    run_id = world.start_with_pages(2)
    ends = [
        Settlement(
            job.id, job.attempt, JobState.QUARANTINED if is_auth else JobState.SKIPPED,
            reason="auth" if is_auth else "robots.txt", error="401" if is_auth else "",
            skip="" if is_auth else "disallowed",
        )
        for job in world.claim()
    ]  # fmt: skip

    world.turn("w", *ends)

    run = world.run(run_id)
    assert (run.state, run.end_reason) == (RunState.FAILED, NOT_ALLOWED)


def test_run_whose_pages_are_all_unchanged_is_none_of_these(world: World) -> None:
    for number in range(3):
        a_full_run(world, f"run-{number}", 2)
    run_id = world.start_with_pages(2, key="unchanged")
    world.turn(
        "w",
        *(
            Settlement(job.id, job.attempt, JobState.SKIPPED, reason="304", skip="unchanged")
            for job in world.claim()
        ),
    )

    run = world.run(run_id)
    assert (run.state, run.end_reason) == (RunState.COMPLETED, "")


def test_retry_of_a_run_that_was_not_let_in_clears_why_it_ended(world: World) -> None:
    run_id = world.start_with_pages(1)
    job = world.one()
    world.turn("w", Settlement(
        job.id, job.attempt, JobState.QUARANTINED, reason="auth", error="401",
    ))  # fmt: skip
    assert world.run(run_id).end_reason == NOT_ALLOWED

    world.store.runs.retry_failed(run_id, "ops", "let in now")
    world.turn("w", done(world.one(), saves=[a_save("a", {})]))

    run = world.run(run_id)
    assert (run.state, run.end_reason) == (RunState.COMPLETED, "")
