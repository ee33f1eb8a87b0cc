"""Rejects: what was judged and not wanted is kept with its code, and can be judged again, once."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects, Rejection
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Flush, Settlement
from penstock.jobs.redrive import redrive_plan
from penstock.jobs.run import RunKind, RunState
from penstock.store.reject_rows import Redriven, RejectFilter, RejectRow
from penstock.store.upkeep import Keep
from tests.contract.scenes import SITE, World, a_job, a_save, done

DAY_S = 86400.0


def rejecting(job: Claimed, *rejections: Rejection) -> Settlement:
    return done(job, effects=Effects(rejections=list(rejections)))


def no_price(reason: str = "no price", score: float | None = None) -> Rejection:
    return Rejection("no_price", reason, score)


def candidates(world: World, *keys: str, source: str = "acme.com", run: str = "first") -> int:
    """A run with these candidates queued, and nothing else left to do."""
    run_id = world.start(source=source, key=run)
    world.turn("w", done(world.one(), children=[a_job("page")]))
    children = [a_job(key, {"sku": key, "of": run}, stage="persist") for key in keys]
    world.turn("w", done(world.one(), children=children))
    return run_id


def all_rejects(world: World, **wanted: Any) -> list[RejectRow]:
    return world.store.rejects.newest(RejectFilter(**wanted))


def redrive(world: World, key: str = "again", **wanted: Any) -> Redriven | None:
    plan = redrive_plan(SITE, {"persist"})
    return world.store.rejects.redrive(
        world.source(), plan, "v2", RejectFilter(**wanted),
        key=key, actor="ops", reason="the parser is mended",
    )  # fmt: skip


def test_reject_is_kept_with_its_item_code_reason_and_score(world: World) -> None:
    run_id = candidates(world, "a")
    job = world.one()

    world.turn("w", rejecting(job, no_price("it is free", 0.2)))

    [row] = all_rejects(world)
    assert (row.source, row.run_id, row.job_id) == ("acme.com", run_id, job.id)
    assert (row.stage, row.key, row.code) == ("persist", "a", "no_price")
    assert (row.reason, row.score, row.redriven_run_id) == ("it is free", 0.2, None)
    assert world.store.rejects.item(row.id) == '{"sku":"a","of":"first"}'
    assert world.run(run_id).rejected == 1
    assert world.job(job.id).state is JobState.SUCCEEDED


def test_reject_of_an_attempt_that_lost_its_job_is_not_kept(world: World) -> None:
    run_id = candidates(world, "a")
    job = world.one()
    world.store.workers.bury("w", "killed")
    world.register("w")

    assert world.turn("w", rejecting(job, no_price())).lost == [job.id]

    assert all_rejects(world) == []
    assert world.run(run_id).rejected == 0


def test_reject_is_written_with_its_attempt_or_not_at_all(world: World) -> None:
    candidates(world, "a")
    job = world.one()
    before = world.dump()

    with world.breaking("INSERT", "reject"), pytest.raises(Exception, match="planted"):
        world.turn("w", rejecting(job, no_price()))

    assert world.dump() == before


def test_reject_that_is_flushed_twice_is_kept_once(world: World) -> None:
    candidates(world, "a")
    job = world.one()
    part = Flush(job.id, job.attempt, Effects(rejections=[no_price()]), number=1)

    world.turn("w", part)
    world.turn("w", part)

    assert len(all_rejects(world)) == 1


def test_rejects_are_found_by_source_run_code_and_time(world: World) -> None:
    first = candidates(world, "a", "b")
    one, two = world.claim()
    world.turn("w", rejecting(one, no_price()), rejecting(two, Rejection("too_old", "2019")))
    world.clock.advance(DAY_S)
    later = world.clock.now()
    other = candidates(world, "c", source="other.org")
    world.turn("w", rejecting(world.one(), no_price()))

    def keys(**wanted: Any) -> list[str]:
        return [row.key for row in all_rejects(world, **wanted)]

    assert keys() == ["c", "b", "a"]
    assert keys(source_id=world.source("acme.com")) == ["b", "a"]
    assert keys(run_id=other) == ["c"]
    assert keys(code="no_price") == ["c", "a"]
    assert keys(since=later) == ["c"]
    assert world.store.rejects.count(RejectFilter(code="no_price")) == 2
    assert world.store.rejects.by_code(first) == {"no_price": 1, "too_old": 1}


def test_redriven_item_that_is_accepted_now_is_a_record(world: World) -> None:
    first = candidates(world, "a", "b", "c")
    for job in world.claim():
        end = rejecting(job, no_price()) if job.key != "c" else done(job, saves=[a_save("c", {})])
        world.turn("w", end)

    redriven = redrive(world)

    assert redriven is not None
    assert (redriven.rejects, redriven.items) == (2, 2)
    run = world.run(redriven.run_id)
    assert (run.kind, run.of_run_id, run.options.is_redrive) == (RunKind.REPLAY, first, True)
    jobs = {job.key: job for job in world.claim()}
    assert sorted(jobs) == ["a", "b"]
    assert jobs["a"].item == '{"sku":"a","of":"first"}'
    world.turn("w", done(jobs["a"], saves=[a_save("a", {})]), rejecting(jobs["b"], no_price()))
    assert [row.key for row in world.store.records.of("product")] == ["a", "c"]
    assert world.run(redriven.run_id).state is RunState.COMPLETED
    assert [(row.key, row.run_id) for row in all_rejects(world, open_only=True)] == [
        ("b", redriven.run_id)
    ]


def test_reject_is_redriven_once(world: World) -> None:
    candidates(world, "a")
    world.turn("w", rejecting(world.one(), no_price()))

    first = redrive(world)

    assert first is not None
    assert redrive(world, key="once more", open_only=True) is None
    [row] = all_rejects(world)
    assert row.redriven_run_id == first.run_id


def test_item_that_several_runs_rejected_is_judged_once_as_it_was_last(world: World) -> None:
    for run in ("first", "second"):
        candidates(world, "a", run=run)
        world.turn("w", rejecting(world.one(), no_price()))

    redriven = redrive(world)

    assert redriven is not None
    assert (redriven.rejects, redriven.items) == (2, 1)
    assert world.run(redriven.run_id).of_run_id is None
    assert world.one().item == '{"sku":"a","of":"second"}'
    assert {row.redriven_run_id for row in all_rejects(world)} == {redriven.run_id}


def test_redrive_takes_only_what_is_wanted(world: World) -> None:
    candidates(world, "a", "b")
    one, two = sorted(world.claim(), key=lambda job: job.key)
    world.turn("w", rejecting(one, no_price()), rejecting(two, Rejection("too_old", "2019")))

    redriven = redrive(world, code="too_old")

    assert redriven is not None
    assert [job.key for job in world.jobs(redriven.run_id)] == ["b"]


def test_redrive_starts_nothing_but_the_rejected_items_and_gathers_nothing(world: World) -> None:
    candidates(world, "a")
    world.turn("w", rejecting(world.one(), no_price()))

    redriven = redrive(world)

    assert redriven is not None
    assert [job.stage for job in world.jobs(redriven.run_id)] == ["persist"]


def test_redrive_of_nothing_starts_no_run(world: World) -> None:
    candidates(world, "a")
    before = world.dump()

    assert redrive(world) is None
    assert world.dump() == before


def test_run_of_a_redrive_and_its_marks_exist_together_or_not_at_all(world: World) -> None:
    candidates(world, "a")
    world.turn("w", rejecting(world.one(), no_price()))
    before = {**world.dump(), "sqlite_sequence": None}

    with world.breaking("UPDATE", "reject"), pytest.raises(Exception, match="planted"):
        redrive(world)

    assert {**world.dump(), "sqlite_sequence": None} == before


def test_rejects_outlive_their_jobs_and_go_when_they_are_old(world: World) -> None:
    candidates(world, "a")
    world.turn("w", rejecting(world.one(), no_price()))
    world.clock.advance(40 * DAY_S)
    while world.store.upkeep.prune(Keep(30 * DAY_S, None, None, None, rejects_s=90 * DAY_S)):
        pass
    assert world.jobs(1) == []
    [row] = all_rejects(world)
    assert world.store.rejects.item(row.id) == '{"sku":"a","of":"first"}'

    world.clock.advance(60 * DAY_S)
    while world.store.upkeep.prune(Keep(None, None, None, None, rejects_s=90 * DAY_S)):
        pass

    assert all_rejects(world) == []


def test_job_whose_candidate_was_rejected_is_not_claimed_again(world: World) -> None:
    candidates(world, "a")
    world.turn("w", rejecting(world.one(), no_price()))

    assert world.turn("w", capacity=Capacity(10)).claimed == []
